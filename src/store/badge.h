/* SPDX-License-Identifier: ISC */
/* The result that a project's badge shows. */
#ifndef SLIPWAY_STORE_BADGE_H
#define SLIPWAY_STORE_BADGE_H

#include "db/db.h"

struct badge {
	int64_t project_id;
	const char *environment; /* NULL = any */
	const char *status; /* of the last deployment that was not canceled;
				  * NULL = none */
};

/* Fills in the status, and the environment's name as it is stored. ERR_NOTFOUND
 * unless the project has a badge and the environment. */
MUSTCHECK const struct err *badge_find(struct db *, struct arena *,
    struct badge *);

#endif
