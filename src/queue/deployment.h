/* SPDX-License-Identifier: ISC */
/* Deployments as the API sees them. The runner's part is in queue.h. */
#ifndef SLIPWAY_QUEUE_DEPLOYMENT_H
#define SLIPWAY_QUEUE_DEPLOYMENT_H

#include "core/state.h"
#include "db/db.h"
#include "queue/deployment_row.h"

/* The body of POST /api/deployments. */
struct deployment_request {
	int64_t project_id;
	struct maybe pipeline_id;
	struct maybe environment_id;
	const char *branch;
	const char *tag;
	const char *commit_hash;
	const char *commit_message;
	struct map env_vars;
};

/* What a new deployment is created from. */
struct deployment_source {
	int64_t project_id;
	const char *default_branch;
	struct json_text env_presets;
	const char *extra_env;
	int64_t pipelines; /* number of matching ones: 0, 1; 2 = several */
	struct maybe pipeline_id;
	struct maybe timeout_seconds;
	const char *checkout;
	bool steps;        /* the pipeline has some */
	bool environments; /* the project has some */
	bool variables;    /* it shares some with others */
};

/* A filter is off if its member is 0 or NULL. `before` selects smaller ids, 0 =
 * all. */
struct deployment_filter {
	int64_t project_id;
	int64_t pipeline_id;
	int64_t environment_id;
	const char *status;
	const char *branch;
	const char *tag;
	const char *commit_hash; /* in lower case, at least 7 digits */
	int64_t created_by;
	const char *trigger; /* one of deployment_triggers */
	int64_t before;
	int64_t limit; /* 1..100 */
};

extern const char *const deployment_triggers[]; /* ends with NULL */
extern const char *const deployment_approvals[];
extern const struct shape deployment_shape;
extern const struct shape deployment_step_shape;
extern const struct shape deployment_request_shape;

/* Newest first, at most filter->limit, fewer if they are very large. `next` is
 * the `before` of the next page, 0 on the last one. */
MUSTCHECK const struct err *deployment_page(struct db *, struct arena *,
    const struct deployment_filter *, struct list *out, int64_t *next);
/* Includes the steps and the queue position. */
MUSTCHECK const struct err *deployment_by_id(struct db *, struct arena *,
    int64_t id, struct deployment *out);
/* Whether the project has pending or running deployments. */
MUSTCHECK const struct err *deployment_unended(struct db *, struct arena *,
    int64_t project_id, bool *out);
/* Inside a transaction: locks the project. Only one transaction at a time can
 * hold it, so its deployments are committed in the order of their ids, which is
 * the order of the queue. ERR_NOTFOUND if it is deleted. */
MUSTCHECK const struct err *deployment_hold_project(struct db *, struct arena *,
    int64_t project_id);
/* Holds the project of a deployment, and says whether it or the environment was
 * deleted: REASON_DELETED, REASON_ENVIRONMENT or REASON_NONE. */
MUSTCHECK const struct err *deployment_hold_place(struct db *, int64_t id,
    enum reason *deleted);
/* Inside a transaction: takes a shared lock on a pipeline of the project.
 * ERR_NOTFOUND if it is deleted or belongs to another project. */
MUSTCHECK const struct err *deployment_share_pipeline(struct db *,
    struct arena *, int64_t project_id, int64_t pipeline_id);
/* Inside a transaction: locks the project as deployment_hold_project() does,
 * and that pipeline, or all its pipelines if `pipeline_id` is not set. If
 * there are several, `out` describes one of them. ERR_NOTFOUND if the project
 * is deleted. */
MUSTCHECK const struct err *deployment_source(struct db *, struct arena *,
    int64_t project_id, struct maybe pipeline_id,
    struct deployment_source *out);
/* Inside a transaction that holds the project and the pipeline: inserts the
 * deployment with a copy of the pipeline's steps. `out` is the new deployment
 * without its queue position. ERR_INVALID if the pipeline has no steps. */
MUSTCHECK const struct err *deployment_insert(struct db *, struct arena *,
    const struct deployment *, struct deployment *out);
/* Inside a transaction: inserts a pending copy of the deployment `retry_of` and
 * of its steps, with the given trigger, user and approval; `out` as above. */
MUSTCHECK const struct err *deployment_repeat(struct db *, struct arena *,
    const struct deployment *, struct deployment *out);
/* The same with the given env_vars, secret_vars, env_role and
 * environment_id. */
MUSTCHECK const struct err *deployment_repeat_with(struct db *, struct arena *,
    const struct deployment *, struct deployment *out);
/* The secret_vars of a deployment. */
MUSTCHECK const struct err *deployment_secrets(struct db *, struct arena *,
    int64_t id, struct json_text *out);
/* Inside a transaction: cancels a pending deployment, or requests that of the
 * runner (cancel_at) if it is running; a repetition changes nothing.
 * ERR_CONFLICT if it has ended. */
MUSTCHECK const struct err *deployment_cancel(struct db *, struct arena *,
    int64_t id, bool *changed);

#endif
