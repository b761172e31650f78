/* SPDX-License-Identifier: ISC */
/* Why a pending deployment does not run yet. */
#ifndef SLIPWAY_QUEUE_WAITING_H
#define SLIPWAY_QUEUE_WAITING_H

#include "db/db.h"
#include "queue/deployment_row.h"

/* The reasons that runners report. */
#define WAITING_SLOTS "slots"
#define WAITING_GIT "git_server"

struct waiting {
	const char *reason;
	const char *detail;
};

/* What is before a pending deployment in its project. */
struct waiting_queue {
	int64_t n;
	int64_t first;   /* of those, 0 = none */
	int64_t running; /* 0 = none */
	bool locks;      /* there is a lock, of this or another project */
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
/* Inside a transaction that holds the project: reads which deployments will be
 * before a new one.  Call it before the insert: MariaDB reads index pages that
 * the transaction has changed ten times as slowly. */
MUSTCHECK const struct err *waiting_look(struct db *, struct arena *,
    const struct deployment *, struct waiting_queue *out);
/* Fills in the same of a new deployment: no runner has seen it yet, so only
 * other deployments of its project can be a reason. */
void waiting_begin(struct arena *, const struct waiting_queue *,
    struct deployment *);
/* Stores a runner's report, which is valid for a minute. */
MUSTCHECK const struct err *waiting_record(struct db *,
    const struct waiting_note *);
/* Deletes outdated reports; writes nothing if there are none. */
MUSTCHECK const struct err *waiting_tidy(struct db *, struct arena *);

#endif
