/* SPDX-License-Identifier: ISC */
/*
 * The queue: pending deployments, and the leases of running ones.
 *
 * A claim is a conditional UPDATE that increments `epoch`. Every later write
 * carries the epoch and changes nothing once it is outdated: the call then
 * returns ERR_PRECONDITION ("fenced"), and its caller stops the job.
 *
 * All calls except claiming may be repeated after ERR_UNAVAILABLE, even if they
 * have succeeded.
 */
#ifndef SLIPWAY_STORE_QUEUE_H
#define SLIPWAY_STORE_QUEUE_H

#include "db/db.h"
#include "store/deployment.h"
#include "store/move.h"

#define QUEUE_OWNER_SIZE 33 /* 128 random bits in hex with a NUL */

/* SQL: of the deployment `d`, nothing but the head of its branch may run. */
#define QUEUE_HEAD_ONLY "(d.`trigger` = 'webhook' AND d.approval IS NULL)"

/* A deployment that this runner holds, with all that its job needs. */
struct claim {
	int64_t id;
	int64_t epoch;
	int64_t project_id;
	const char *project_name;
	const char *project_dir;
	const char *repository;
	const char *pipeline_name;
	const char *environment_name; /* NULL = none */
	const char *branch;
	const char *commit_hash;
	struct json_text env_vars;
	struct json_text secret_vars; /* each sealed separately */
	struct maybe timeout_seconds;
	const char *checkout; /* one of pipeline_checkouts */
	struct maybe created_by;
	bool head_only;    /* started by a push and not approved: superseded
			    * if another push followed */
	bool on_branch;    /* the environment accepts only certain branches */
	bool cancel;       /* cancelation was requested */
	struct list steps; /* struct deployment_step, by position */
};

/* A running deployment. */
struct held {
	int64_t id;
	int64_t epoch;
	const char *owner;
	bool cancel; /* cancelation was requested */
};

struct queue_end {
	int64_t id;
	int64_t epoch;
	enum reason reason; /* REASON_NONE = success */
	const char *detail;
	int64_t log_size;
	struct when finished_at; /* none = now */
	/* What to write before, in the same transaction, or NULL.  It may run
	 * several times, and may set the members above. */
	db_body *before;
	void *context;
};

#define QUEUE_AVOID 32 /* maximum length of `avoid` */

struct queue_claimer {
	const char *owner; /* random name of this process */
	const char *runner;
	const char *labels;   /* of the runner, a JSON array */
	int64_t lease;        /* seconds */
	const int64_t *avoid; /* deployments that cannot start now */
	size_t navoid;
	/* Whether to skip a deployment for now; NULL = never. */
	bool (*skips)(void *context, int64_t id, const char *repository);
	void *context;
};

/* Claims a pending deployment that does not wait for approval and whose project
 * is idle: the oldest rollback of its project, else the oldest of all, and not to
 * be avoided; ERR_NOTFOUND if there is none. After any other error,
 * a deployment may be held without the caller's knowledge: queue_held finds it,
 * and queue_release puts it back. */
MUSTCHECK const struct err *queue_claim(struct db *, struct arena *,
    const struct queue_claimer *, struct claim *out);
/* Puts an unstarted claim back (pending, epoch incremented). It becomes
 * canceled instead if that was requested or its project was deleted. */
MUSTCHECK const struct err *queue_release(struct db *, int64_t id,
    int64_t epoch);
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
/* Also in a transaction. */
MUSTCHECK const struct err *queue_commit(struct db *, int64_t id, int64_t epoch,
    const char *branch, const char *hash, const char *message);
/* Ends a deployment. Its pending steps become skipped, its running steps
 * `interrupted` (`canceled` if the deployment is). */
MUSTCHECK const struct err *queue_end(struct db *, const struct queue_end *);
/* Running deployments with an expired lease become `interrupted` with reason
 * runner_lost; `out` is their number. Writes nothing if there are none. To
 * decide whether that is justified, see store/lease.h. */
MUSTCHECK const struct err *queue_expire(struct db *, int64_t *out);
/* Deletes old commit tokens, some thousands per call. Writes nothing if there
 * are none. */
MUSTCHECK const struct err *queue_tidy(struct db *);

#endif
