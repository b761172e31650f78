/* SPDX-License-Identifier: ISC */
/* Deployments as the API sees them; what the runner does is in queue.h. */
#ifndef SLIPWAY_STORE_DEPLOYMENT_H
#define SLIPWAY_STORE_DEPLOYMENT_H

#include "db/db.h"

struct deployment_step {
	int64_t deployment_id;
	int64_t position;
	const char *name;
	const char *script; /* not in answers */
	struct maybe timeout_seconds;
	const char *run_when;
	const char *status;
	struct maybe exit_code;
	struct maybe signal;
	struct when started_at;
	struct when finished_at;
	struct maybe log_offset;
	struct maybe log_length;
};

struct deployment {
	int64_t id;
	int64_t project_id;
	int64_t pipeline_id;
	const char *branch; /* NULL = the repository's HEAD, until known */
	const char *commit_hash;
	const char *commit_message;
	struct json_text env_vars;    /* secrets stand in it as null */
	struct json_text secret_vars; /* the same ones sealed, for writing */
	const char *env_role; /* who chose them: deployer, maintainer; NULL = an
			       * older version did not say; not in answers */
	const char *status;
	const char *reason;
	const char *detail;
	const char *trigger;
	struct maybe retry_of;
	struct maybe created_by;
	const char *runner;
	struct when created_at;
	struct when started_at;
	struct when finished_at;
	int64_t log_size;
	bool is_cut; /* long texts are missing, inside the store only */
	struct maybe queue_position; /* while pending: 0 = next */
	struct list waiting_for;     /* struct waiting */
	struct list steps;           /* struct deployment_step */
};

/* What POST /api/deployments takes. */
struct deployment_request {
	int64_t project_id;
	struct maybe pipeline_id;
	const char *branch;
	const char *commit_hash;
	const char *commit_message;
	struct map env_vars;
};

/* Zero and NULL members do not filter. `before` = ids below it, 0 = all. */
struct deployment_filter {
	int64_t project_id;
	int64_t pipeline_id;
	const char *status;
	const char *branch;
	int64_t before;
	int64_t limit; /* 1..100 */
};

extern const char *const deployment_triggers[]; /* ends with NULL */
extern const struct shape deployment_shape;
extern const struct shape deployment_step_shape;
extern const struct shape deployment_request_shape;

/* Newest first; at most filter->limit, fewer where they are very large.  `next`
 * is the `before` of what follows, 0 if nothing does. */
MUSTCHECK const struct err *deployment_page(struct db *, struct arena *,
    const struct deployment_filter *, struct list *out, int64_t *next);
/* With steps and queue position. */
MUSTCHECK const struct err *deployment_by_id(struct db *, struct arena *,
    int64_t id, struct deployment *out);
/* Whether some of the project wait or run. */
MUSTCHECK const struct err *deployment_unended(struct db *, struct arena *,
    int64_t project_id, bool *out);
/* Inside a transaction: locks the project.  One transaction holds it at a time,
 * so that its deployments are committed in the order of their ids, which is the
 * order of the queue.  ERR_NOTFOUND if it is not live. */
MUSTCHECK const struct err *deployment_hold_project(struct db *, struct arena *,
    int64_t project_id);
/* The same by a deployment of it. */
MUSTCHECK const struct err *deployment_hold_project_of(struct db *,
    struct arena *, int64_t id);
/* Inside a transaction: a shared lock on the pipeline to deploy.  If
 * `pipeline_id` is not set, the project's only one; ERR_CONFLICT if there are
 * several.  ERR_NOTFOUND if it is not live. */
MUSTCHECK const struct err *deployment_share_pipeline(struct db *,
    struct arena *, int64_t project_id, struct maybe pipeline_id, int64_t *out);
/* Of the pipeline that is to be deployed. */
MUSTCHECK const struct err *deployment_steps_count(struct db *, struct arena *,
    int64_t pipeline_id, int64_t *out);
/* Inside a transaction: the deployment with a copy of its pipeline's steps;
 * ERR_INVALID if there are none. */
MUSTCHECK const struct err *deployment_insert(struct db *,
    const struct deployment *, int64_t *id);
/* Inside a transaction: a pending copy of a deployment, with its own copy of
 * that one's steps. */
MUSTCHECK const struct err *deployment_repeat(struct db *, int64_t id,
    int64_t created_by, int64_t *copy);
/* Inside a transaction: pending -> canceled at once; running: the runner is
 * asked (cancel_at), twice is no error.  Finished: ERR_CONFLICT. */
MUSTCHECK const struct err *deployment_cancel(struct db *, struct arena *,
    int64_t id);

#endif
