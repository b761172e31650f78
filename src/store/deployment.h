/* SPDX-License-Identifier: ISC */
/* Deployments as the API sees them. The runner's part is in queue.h. */
#ifndef SLIPWAY_STORE_DEPLOYMENT_H
#define SLIPWAY_STORE_DEPLOYMENT_H

#include "core/state.h"
#include "db/db.h"

struct deployment_step {
	int64_t deployment_id;
	int64_t position;
	const char *name;
	const char *script;    /* not in responses, like the next one */
	const char *directory; /* NULL = the root of the workspace */
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
	struct maybe environment_id;
	const char *branch; /* NULL = the repository's HEAD, not resolved yet,
			     * or a tag */
	const char *tag;    /* NULL = a branch */
	const char *commit_hash;
	const char *commit_message;
	struct json_text env_vars;    /* secret values are null */
	struct json_text secret_vars; /* the secret values, sealed;
				       * write-only */
	struct maybe timeout_seconds; /* of the pipeline; write-only */
	const char *checkout;         /* the same; not in responses */
	const char *env_role; /* role of the user who chose them: deployer,
			       * maintainer; NULL = unknown, from an older
			       * version; not in responses */
	const char *status;
	const char *reason;
	const char *detail;
	const char *trigger;
	struct maybe retry_of;
	struct maybe created_by;
	const char *approval; /* one of deployment_approvals; NULL = not
			       * required */
	struct maybe approval_by;
	struct when approval_at;
	const char *approval_comment;
	const char *rollback_reason;
	int64_t turn;            /* write-only */
	const char *trigger_key; /* of a push; the same */
	const char *when_moved;  /* one of DEPLOYMENT_MOVED_*; the same */
	const char *runner;
	struct when created_at;
	struct when started_at;
	struct when finished_at;
	int64_t log_size;
	struct maybe queue_position; /* while pending; 0 = next */
	struct list waiting_for;     /* struct waiting */
	struct list steps;           /* struct deployment_step */
};

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

/* The turn of a pending deployment in its project. */
enum {
	DEPLOYMENT_FIRST, /* a rollback */
	DEPLOYMENT_NEXT,
	DEPLOYMENT_LATER, /* after its approval */
};

/* That of a new one. */
int64_t deployment_turn(const struct deployment *);

/* What becomes of the deployment of a push if its branch has moved. */
#define DEPLOYMENT_MOVED_CANCEL "cancel"
#define DEPLOYMENT_MOVED_FOLLOW "follow"
#define DEPLOYMENT_MOVED_IGNORE "ignore"
#define DEPLOYMENT_ROLLBACK "rollback"
#define DEPLOYMENT_PROMOTION "promotion"
#define APPROVAL_REQUIRED "required"
#define APPROVAL_GRANTED "granted"
#define APPROVAL_DENIED "denied"

extern const char *const deployment_triggers[]; /* ends with NULL */
extern const char *const deployment_approvals[];
extern const struct field deployment_fields[];
extern const struct field deployment_step_fields[];
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
