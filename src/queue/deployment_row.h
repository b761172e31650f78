/* SPDX-License-Identifier: ISC */
/* A deployment with its steps, and what lists of deployments share with the
 * read of one. */
#ifndef SLIPWAY_QUEUE_DEPLOYMENT_ROW_H
#define SLIPWAY_QUEUE_DEPLOYMENT_ROW_H

#include "db/db.h"

struct deployment_step {
	int64_t deployment_id;
	int64_t position;
	const char *name;
	const char *script;    /* not in responses, like the next one */
	const char *directory; /* NULL = the root of the workspace */
	struct maybe timeout_seconds;
	const char *run_when;
	bool may_fail;
	const char *status;
	struct maybe exit_code;
	struct maybe signal;
	struct when started_at;
	struct when finished_at;
	struct maybe log_offset;
	struct maybe log_length;
};

/* The key of a variable, in a list. */
struct env_key {
	const char *text;
};
extern const struct shape env_key_shape;

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
	bool commit_read;          /* these were read from the repository */
	struct json_text env_vars; /* secret values are null */
	struct json_text env_vars_sent; /* array of the keys that the request
					 * set; NULL = unknown */
	struct json_text secret_vars;   /* the secret values, sealed;
				       * write-only */
	struct maybe timeout_seconds;   /* of the pipeline; write-only */
	const char *checkout;           /* the same; not in responses */
	const char *env_role; /* role of the user who chose them: deployer,
			       * maintainer; NULL = unknown, from an older
			       * version; not in responses */
	const char *status;
	const char *reason;
	const char *detail;
	const char *trigger;
	struct maybe retry_of;
	struct maybe created_by;
	struct maybe read_by; /* with whose access the repository is read;
			       * not set = with that of created_by;
			       * write-only */
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
	int64_t warnings;            /* steps that failed although they may */
	struct maybe queue_position; /* while pending; 0 = next */
	struct list waiting_for;     /* struct waiting */
	struct list steps;           /* struct deployment_step */
};

/* The turn of a pending deployment in its project. */
enum {
	DEPLOYMENT_FIRST, /* a rollback */
	DEPLOYMENT_NEXT,
	DEPLOYMENT_LATER, /* after its approval */
};

/* That of a new one. */
int64_t deployment_turn(const struct deployment *);

/* The fate of a deployment of a push whose branch has moved. */
#define DEPLOYMENT_MOVED_CANCEL "cancel"
#define DEPLOYMENT_MOVED_FOLLOW "follow"
#define DEPLOYMENT_MOVED_IGNORE "ignore"
#define DEPLOYMENT_ROLLBACK "rollback"
#define DEPLOYMENT_PROMOTION "promotion"
#define APPROVAL_REQUIRED "required"
#define APPROVAL_GRANTED "granted"
#define APPROVAL_DENIED "denied"

/* Reads the row only: without steps and the size of a growing log. */
MUSTCHECK const struct err *deployment_row(struct db *, struct arena *,
    int64_t id, struct deployment *out);
/* Fills in the size of the logs that are still growing. */
MUSTCHECK const struct err *deployment_logs_measure(struct db *, struct arena *,
    struct list *);

#endif
