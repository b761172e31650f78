/* SPDX-License-Identifier: ISC */
#include "store/repeat.h"

#include "store/env.h"
#include "store/store.h"

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
static const struct field id_args[] = { FIELD(struct place, id, 0), FIELD_END };
#define T(m) FIELD(struct repeat_targets, m, 0)
static const struct field targets_row[] = { T(live), T(before), T(pending),
	T(running), FIELD_END };
/* clang-format off */
#define CONTENT(d) "IF(" d ".`trigger` = 'rollback', " d ".retry_of, " d ".id)"
/* A rollback of the environment in that state; 0 = none. */
#define ROLLBACK(status)						\
	"COALESCE((SELECT MIN(r.id) FROM deployment r"			\
	" WHERE r.status = '" status "' AND r.turn = 0"			\
	" AND r.project_id = e.project_id"				\
	" AND r.environment_id = e.id), 0)"
static const struct stmt targets = {
	.name = "repeat_targets",
	.sql = "SELECT COALESCE(" CONTENT("l") ", 0) AS live,"
	       " COALESCE(" CONTENT("b") ", 0) AS `before`,"
	       " " ROLLBACK("pending") " AS pending,"
	       " " ROLLBACK("running") " AS running"
	       " FROM environment e"
	       " LEFT JOIN deployment l ON l.id = e.live_deployment"
	       " LEFT JOIN deployment o ON o.id = " CONTENT("l")
	       " LEFT JOIN deployment b ON b.id = o.replaced"
	       " WHERE e.id = ? AND e.valid = 1",
	.args = id_args,
	.row = targets_row,
	.rowsize = sizeof(struct repeat_targets),
};
/* clang-format on */

static const struct stmt *const repeat_stmts[] = { &targets, NULL };

const struct store repeat_store = {
	.stmts = repeat_stmts,
};

const struct err *
repeat_targets(struct db *db, struct arena *a, int64_t environment_id,
    struct repeat_targets *out)
{
	const struct place args = { .id = environment_id };

	return db_row(db, a, &targets, &args, out);
}
