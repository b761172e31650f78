/* SPDX-License-Identifier: ISC */
#include "queue/repeat.h"

#include "queue/stores.h"

static const char *const thens[] = { "rollback", NULL };

static const struct field rollback_fields[] = {
	FIELD(struct rollback_request, deployment_id, FIELD_IN | FIELD_NULL,
	    .min = 1,
	    .doc = "A successful deployment to the environment; the default is "
		   "the one before the live one."),
	FIELD(struct rollback_request, reason,
	    FIELD_IN | FIELD_NULL | FIELD_TEXT, .max = REPEAT_REASON_MAX,
	    .doc = "Why; everyone who may see the deployment can read it."),
	FIELD_END,
};
const struct shape rollback_request_shape = {
	.name = "RollbackRequest",
	.fields = rollback_fields,
	.size = sizeof(struct rollback_request),
	.doc = "A rollback of an environment.",
};

static const struct field promotion_fields[] = {
	FIELD(struct promotion_request, environment_id, FIELD_IN | FIELD_MUST,
	    .min = 1, .doc = "Another environment of the project."),
	FIELD(struct promotion_request, env_vars, FIELD_IN | FIELD_GAPS,
	    .max = 1000, .named = "EnvVars",
	    .doc = "Environment variables, as for a new deployment."),
	FIELD_END,
};
const struct shape promotion_request_shape = {
	.name = "PromotionRequest",
	.fields = promotion_fields,
	.size = sizeof(struct promotion_request),
	.doc = "A promotion of a deployment to another environment.",
};

static const struct field cancel_fields[] = {
	FIELD(struct cancel_request, then, FIELD_IN | FIELD_NULL,
	    .values = thens, .named = "CancelThen",
	    .doc = "What follows: rollback = a rollback of the environment to "
		   "the live deployment; null = nothing."),
	FIELD_END,
};
const struct shape cancel_request_shape = {
	.name = "CancelRequest",
	.fields = cancel_fields,
	.size = sizeof(struct cancel_request),
	.doc = "A cancellation of a deployment.",
};

struct place {
	int64_t id;
};

#include "queue/repeat.sql.h"

const struct store repeat_store = {
	.stmts = repeat_stmts,
};

const struct err *
repeat_targets(struct db *db, struct arena *a, int64_t environment_id,
    struct repeat_targets *out)
{
	const struct place args = { .id = environment_id };

	return db_row(db, a, &sql_repeat_targets, &args, out);
}
