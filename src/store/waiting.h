/* SPDX-License-Identifier: ISC */
/* Why a pending deployment does not run yet. */
#ifndef SLIPWAY_STORE_WAITING_H
#define SLIPWAY_STORE_WAITING_H

#include "db/db.h"
#include "store/deployment.h"

#define WAITING_SLOTS "slots" /* the reason that runners report */

struct waiting {
	const char *reason;
	const char *detail;
};

/* A report of a runner. */
struct waiting_note {
	int64_t deployment_id;
	const char *reason;
	const char *detail;
	const char *runner;
};

extern const struct shape waiting_shape;

/* Fills in the queue position of a pending deployment, and why it waits: a list
 * of struct waiting, which is empty for the first seconds. */
MUSTCHECK const struct err *waiting_find(struct db *, struct arena *,
    struct deployment *);
/* The same inside the transaction that created it: no runner has seen it yet,
 * so only other deployments of its project can be a reason. */
MUSTCHECK const struct err *waiting_begin(struct db *, struct arena *,
    struct deployment *);
/* Stores a runner's report, which is valid for a minute. */
MUSTCHECK const struct err *waiting_record(struct db *,
    const struct waiting_note *);
/* Deletes outdated reports; writes nothing if there are none. */
MUSTCHECK const struct err *waiting_tidy(struct db *, struct arena *);

#endif
