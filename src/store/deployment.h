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
	struct json_text env_vars; /* secrets stand in it as null */
	struct blob secret_vars;   /* sealed object of strings */
	const char *status;
	const char *reason;
	const char *detail;
	const char *trigger;
	struct maybe retry_of;
	struct maybe created_by;
	const char *runner;
	struct maybe timeout_seconds; /* copied from the pipeline */
	struct when created_at;
	struct when started_at;
	struct when finished_at;
	int64_t log_size;
	struct maybe queue_position; /* while pending: 0 = next */
	struct list steps;           /* struct deployment_step */
};

/* What POST /api/deployments takes. */
struct deployment_request {
	int64_t project_id;
	struct maybe pipeline_id;
	const char *branch;
	const char *commit_hash;
	const char *commit_message;
	struct json_text env_vars;
};

/* Zero and NULL members do not filter. `before` = ids below it, 0 = all. */
struct deployment_filter {
	int64_t project_id;
	int64_t pipeline_id;
	const char *status;
	const char *branch;
	int64_t before;
	int64_t limit;
};

extern const struct shape deployment_shape;
extern const struct shape deployment_step_shape;
extern const struct shape deployment_request_shape;
extern const struct stmt *const deployment_stmts[];

/* Newest first; at most filter->limit. */
MUSTCHECK const struct err *deployment_page(struct db *, struct arena *,
    const struct deployment_filter *, struct list *out);
/* With steps and queue position. */
MUSTCHECK const struct err *deployment_by_id(struct db *, struct arena *,
    int64_t id, struct deployment *out);
/* The deployment and its copy of `steps` (struct step or deployment_step
 * rows already copied into deployment->steps); inside a transaction. */
MUSTCHECK const struct err *deployment_insert(struct db *,
    const struct deployment *, int64_t *id);
/* pending -> canceled at once; running: the runner is asked (cancel_at).
 * Finished: ERR_CONFLICT. Asking twice is no error. */
MUSTCHECK const struct err *deployment_cancel(struct db *, int64_t id);

/* Idempotency-Key: the stored answer, ERR_NOTFOUND if there is none younger
 * than a day, ERR_INVALID if it belongs to another body. */
MUSTCHECK const struct err *idempotency_find(struct db *, struct arena *,
    int64_t user_id, const char *key, const char *request_hash,
    int64_t *deployment_id, const char **answer);
/* Inside the transaction of the deployment. */
MUSTCHECK const struct err *idempotency_save(struct db *, int64_t user_id,
    const char *key, const char *request_hash, int64_t deployment_id,
    const char *answer);

#endif
