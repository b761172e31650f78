/* SPDX-License-Identifier: ISC */
/*
 * Claims of pending deployments.  A claim is a conditional UPDATE that
 * increments the `epoch`; from then on queue.h writes under that epoch.
 */
#ifndef SLIPWAY_QUEUE_CLAIM_H
#define SLIPWAY_QUEUE_CLAIM_H

#include "db/db.h"
#include "queue/deployment.h"

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
	const char *tag; /* NULL = a branch */
	const char *commit_hash;
	struct json_text env_vars;
	struct json_text secret_vars; /* each sealed separately */
	struct maybe timeout_seconds;
	const char *checkout; /* one of pipeline_checkouts */
	struct maybe created_by;
	struct maybe read_by; /* who reads the repository; not set = the
			       * service, or unknown */
	bool is_automatic;    /* no user started it */
	bool has_left;        /* that user may no longer deploy the project */
	struct maybe set_by;  /* who set the repository; not set = unknown */
	struct maybe rollback_to; /* the deployment that a rollback repeats */
	int64_t head_only; /* started by a push and not approved; if another
			    * push followed: 1 = it is superseded, 2 = it
			    * deploys the other one; else 0 */
	bool on_branch;    /* the environment accepts only certain branches or
			    * tags, or the approver was shown one */
	bool cancel;       /* cancellation was requested */
	bool over_deleted; /* the directory of a deleted project overlaps its
			    * project's */
	const char *deploy_key;       /* private half, sealed; NULL = none */
	const char *deploy_key_print; /* its fingerprint */
	struct maybe submodules;      /* of the project; not set = as the
				       * runner's setting */
	bool lfs;                     /* files of Git LFS are wanted */
	struct json_text submodule_repositories; /* struct submodule_path */
	struct maybe submodules_by;              /* who set that list */
	int64_t cache_generation; /* of its project, at most INT32_MAX */
	bool notices;             /* the project has notifiers */
	struct maybe git_waited;  /* seconds that it has waited for its Git
				  * server */
	int64_t log_size;         /* what earlier tries of the checkout wrote */
	struct list steps;        /* struct deployment_step, by position */
};

#define CLAIM_AVOID 32 /* maximum length of `avoid` */
#define CLAIM_MAX 8    /* in one transaction; each can take 9 MiB */

/* A deployment that can be claimed. */
struct claim_candidate {
	int64_t id;
	int64_t epoch;
	const char *repository; /* "" if it is not fetched from */
	int64_t project_id;
	bool is_stuck; /* no runner is online that may run it */
};

struct claimer {
	const char *owner; /* random name of this process */
	const char *runner;
	const char *labels;   /* of the runner, a JSON array */
	int64_t lease;        /* seconds */
	const int64_t *avoid; /* deployments that cannot start now */
	size_t navoid;
	/* Whether to skip a candidate for now, if the `n` of `chosen` are
	 * claimed together with it; NULL = never. */
	bool (*skips)(void *context, const struct claim_candidate *,
	    const struct claim_candidate *chosen, size_t n);
	void *context;
};

struct claimed {
	struct list list; /* struct claim */
	bool is_all;      /* nothing else can be claimed now */
};

/* Claims up to `max` pending deployments in one transaction: of each project
 * that is idle the oldest rollback, else the oldest deployment, that does not
 * wait for approval, for the end of a lock or for a runner that is offline, and
 * is not to be avoided; the oldest of all first. A lock counts if it is
 * committed before the claim, not before the choice. ERR_NOTFOUND if there are
 * none. After any other error, deployments may be held without the caller's
 * knowledge: queue_held finds them, and queue_release puts them back. */
MUSTCHECK const struct err *claim_next(struct db *, struct arena *,
    const struct claimer *, size_t max, struct claimed *out);

#endif
