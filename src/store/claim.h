/* SPDX-License-Identifier: ISC */
/*
 * Claims of pending deployments.  A claim is a conditional UPDATE that
 * increments the `epoch`; from then on queue.h writes under that epoch.
 */
#ifndef SLIPWAY_STORE_CLAIM_H
#define SLIPWAY_STORE_CLAIM_H

#include "db/db.h"
#include "store/deployment.h"

/* SQL: of the deployment `d`, nothing but the head of its branch may run. */
#define CLAIM_HEAD_ONLY "(d.`trigger` = 'webhook' AND d.approval IS NULL)"

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

#define CLAIM_AVOID 32 /* maximum length of `avoid` */

struct claimer {
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
 * is idle: the oldest rollback of its project, else the oldest of all, and not
 * to be avoided; ERR_NOTFOUND if there is none. After any other error, a
 * deployment may be held without the caller's knowledge: queue_held finds it,
 * and queue_release puts it back. */
MUSTCHECK const struct err *claim_next(struct db *, struct arena *,
    const struct claimer *, struct claim *out);

#endif
