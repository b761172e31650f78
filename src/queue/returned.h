/* SPDX-License-Identifier: ISC */
/* Deployments that a runner claimed and gave back, because it could not start
 * them. */
#ifndef SLIPWAY_QUEUE_RETURNED_H
#define SLIPWAY_QUEUE_RETURNED_H

#include "db/db.h"

struct returned {
	int64_t n;   /* how often it was given back, now included */
	bool others; /* another runner is online and well that may run it */
};

/* Counts that the runner gives a deployment back. */
MUSTCHECK const struct err *returned_count(struct db *, struct arena *,
    int64_t deployment_id, const char *runner, struct returned *out);
/* Deletes old counts; writes nothing if there are none. */
MUSTCHECK const struct err *returned_tidy(struct db *, struct arena *);

#endif
