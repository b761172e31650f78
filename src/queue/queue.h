/* SPDX-License-Identifier: ISC */
/*
 * The queue: the leases of running deployments, and their ends.
 *
 * A claim (claim.h) increments the `epoch`. Every later write
 * carries the epoch and changes nothing once it is outdated: the call then
 * returns ERR_PRECONDITION ("fenced"), and its caller stops the job.
 *
 * All calls may be repeated after ERR_UNAVAILABLE, even if they
 * have succeeded.
 */
#ifndef SLIPWAY_QUEUE_QUEUE_H
#define SLIPWAY_QUEUE_QUEUE_H

#include "db/db.h"
#include "queue/move.h"

#define QUEUE_OWNER_SIZE 33 /* 128 random bits in hex with a NUL */

/* A running deployment. */
struct held {
	int64_t id;
	int64_t epoch;
	const char *owner;
	bool cancel; /* cancellation was requested */
};

struct queue_end {
	int64_t id;
	int64_t epoch;
	enum reason reason; /* REASON_NONE = success */
	const char *detail;
	int64_t warnings; /* steps that failed and may */
	int64_t log_size;
	struct when finished_at; /* none = now */
	/* Called first in the same transaction, or NULL. It may run several
	 * times, and may set the members above. */
	db_body *before;
	void *context;
	bool holds; /* joblog_append() is the first of it */
};

/* Puts an unstarted claim back (pending, epoch incremented). It becomes
 * canceled instead if that was requested or its project was deleted. */
MUSTCHECK const struct err *queue_release(struct db *, int64_t id,
    int64_t epoch);
/* Why a deployment that is held waits for its Git server. */
struct queue_wait {
	int64_t id;
	int64_t epoch;
	int64_t pause;      /* milliseconds; no runner claims it before */
	const char *detail; /* for users */
	const char *runner; /* which did not reach the server */
};
/* Puts a claim back of which no step has started, to be claimed again after the
 * pause. Its log stays. It becomes canceled as with queue_release(). */
MUSTCHECK const struct err *queue_wait(struct db *, const struct queue_wait *);
/* Renews a lease. Also takes over a deployment adopted from the spool by
 * setting its owner. */
MUSTCHECK const struct err *queue_renew(struct db *, int64_t id, int64_t epoch,
    const char *owner, int64_t lease);
/* Lists the running deployments of `owner` as struct held; reads only. */
MUSTCHECK const struct err *queue_held(struct db *, struct arena *,
    const char *owner, struct list *out);
/* The same for all owners with a runner's name and an unexpired lease. */
MUSTCHECK const struct err *queue_held_by_runner(struct db *, struct arena *,
    const char *runner, struct list *out);
/* Also in a transaction.  A branch of NULL keeps the present one, and "" removes
 * it and the tag: they do not have the commit. */
MUSTCHECK const struct err *queue_commit(struct db *, int64_t id, int64_t epoch,
    const char *branch, const char *hash, const char *message);
/* Ends a deployment. Its pending steps become skipped, its running steps
 * `interrupted` (`canceled` if the deployment is). */
MUSTCHECK const struct err *queue_end(struct db *, const struct queue_end *);
/* Ends all of them in one transaction, or none: ERR_PRECONDITION if one is no
 * longer held, or has ended before. */
MUSTCHECK const struct err *queue_end_all(struct db *,
    const struct queue_end *const *ends, size_t n);
/* Running deployments with an expired lease become `interrupted` with reason
 * runner_lost; `out` is their number. Writes nothing if there are none. To
 * decide whether that is justified, see store/lease.h. */
MUSTCHECK const struct err *queue_expire(struct db *, int64_t *out);
/* Deletes old commit tokens, some thousands per call. Writes nothing if there
 * are none. */
MUSTCHECK const struct err *queue_tidy(struct db *);

#endif
