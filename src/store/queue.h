/* SPDX-License-Identifier: ISC */
/*
 * The queue: deployments that are pending, and the leases of those that run.
 *
 * Claiming is a conditional UPDATE that bumps `epoch`; every later write
 * carries the epoch and does nothing once another has it: such a call returns
 * ERR_PRECONDITION ("fenced") and its caller stops the job.
 *
 * All but claiming may be repeated after ERR_UNAVAILABLE, also where it had
 * happened after all.
 */
#ifndef SLIPWAY_STORE_QUEUE_H
#define SLIPWAY_STORE_QUEUE_H

#include "db/db.h"
#include "store/deployment.h"
#include "store/move.h"

#define QUEUE_OWNER_SIZE 33 /* 128 random bits in hex with a NUL */

/* A deployment that this runner holds, and all its job needs. */
struct claim {
	int64_t id;
	int64_t epoch;
	int64_t project_id;
	const char *project_name;
	const char *project_dir;
	const char *repository;
	const char *pipeline_name;
	const char *branch;
	const char *commit_hash;
	struct json_text env_vars;
	struct json_text secret_vars; /* each sealed by itself */
	struct maybe timeout_seconds;
	struct maybe created_by;
	bool head_only;    /* a push started it: void once another followed */
	bool cancel;       /* was asked for meanwhile */
	struct list steps; /* struct deployment_step, by position */
};

/* A running deployment as the queue knows it. */
struct held {
	int64_t id;
	int64_t epoch;
	const char *owner;
	bool cancel; /* was asked for */
};

struct queue_end {
	int64_t id;
	int64_t epoch;
	enum reason reason; /* REASON_NONE: success */
	const char *detail;
	int64_t log_size;
	struct when finished_at; /* none = now */
};

#define QUEUE_AVOID 32 /* as many at most */

struct queue_claimer {
	const char *owner; /* this process's random name */
	const char *runner;
	int64_t lease;        /* seconds */
	const int64_t *avoid; /* deployments that cannot be started now */
	size_t navoid;
	/* Whether another is to go first; NULL = never. */
	bool (*skips)(void *context, int64_t id, const char *repository);
	void *context;
};

/* One pending deployment whose project is idle, oldest first in its project and
 * none of those to avoid; ERR_NOTFOUND if there is none.  After any other error a deployment may be held that the caller does not know of:
 * queue_held tells, and queue_release puts it back. */
MUSTCHECK const struct err *queue_claim(struct db *, struct arena *,
    const struct queue_claimer *, struct claim *out);
/* Puts an unstarted claim back (pending, epoch bumped); one that was to be
 * canceled meanwhile, or whose project was deleted, is canceled. */
MUSTCHECK const struct err *queue_release(struct db *, int64_t id,
    int64_t epoch);
/* The lease of one; also takes over a deployment adopted from the spool by
 * setting its owner. */
MUSTCHECK const struct err *queue_renew(struct db *, int64_t id, int64_t epoch,
    const char *owner, int64_t lease);
/* `owner`'s running deployments as struct held; reads only. */
MUSTCHECK const struct err *queue_held(struct db *, struct arena *,
    const char *owner, struct list *out);
/* The same for all owners of a runner's name whose leases last. */
MUSTCHECK const struct err *queue_held_by_runner(struct db *, struct arena *,
    const char *runner, struct list *out);
MUSTCHECK const struct err *queue_commit(struct db *, int64_t id, int64_t epoch,
    const char *branch, const char *hash, const char *message);
/* Final; steps still pending become skipped, running ones `interrupted`
 * (`canceled` where the deployment is). */
MUSTCHECK const struct err *queue_end(struct db *, const struct queue_end *);
/* Running deployments whose lease ran out become `interrupted` with reason
 * runner_lost; how many in `out`. Writes nothing where there is none. See
 * store/lease.h for whether that is just. */
MUSTCHECK const struct err *queue_expire(struct db *, int64_t *out);
/* Removes commit tokens that are past their time, some thousands a call.  Writes
 * nothing where there is none. */
MUSTCHECK const struct err *queue_tidy(struct db *);

#endif
