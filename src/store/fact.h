/* SPDX-License-Identifier: ISC */
/* Deployments that wait for approval, and whose commit was not read from the
 * repository when they were created: those of pushes, and others if the Git
 * server did not respond. */
#ifndef SLIPWAY_STORE_FACT_H
#define SLIPWAY_STORE_FACT_H

#include "db/db.h"

struct fact {
	int64_t id;
	int64_t project_id;
	const char *repository;
	const char *branch; /* NULL = that of the repository's HEAD, or a tag */
	const char *tag;
	const char *commit_hash;    /* the whole one */
	const char *commit_message; /* NULL = unknown */
	struct maybe read_by;       /* with whose access it is read */
	bool has_left;              /* that user may no longer deploy it */
};

/* Milliseconds until one is due, at most `max`. */
MUSTCHECK const struct err *fact_due(struct db *, int64_t max, int64_t *out);
/* Takes one that is due; it is due again later, the older it is, unless it is
 * saved. ERR_NOTFOUND. */
MUSTCHECK const struct err *fact_take(struct db *, struct arena *,
    struct fact *out);
/* The repository has the commit on the branch or tag, with this message. */
MUSTCHECK const struct err *fact_save(struct db *, const struct fact *);

#endif
