/* SPDX-License-Identifier: ISC */
/* The next ids of the objects that leave traces outside the database: the
 * releases, spool and caches of deployments, the workspaces and accounts of
 * projects and environments. */
#ifndef SLIPWAY_STORE_SEQUENCE_H
#define SLIPWAY_STORE_SEQUENCE_H

#include "db/db.h"

struct sequence {
	const char *name; /* of the table */
	int64_t next;
};

/* Lists them as struct sequence. */
MUSTCHECK const struct err *sequence_list(struct db *, struct arena *,
    struct list *out);
/* Raises the next id; the account must be the one that migrates. */
MUSTCHECK const struct err *sequence_raise(struct db *, struct arena *,
    const struct sequence *);

#endif
