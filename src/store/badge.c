/* SPDX-License-Identifier: ISC */
#include "store/badge.h"

#include "store/store.h"

#define B(m) FIELD(struct badge, m, 0)
#define NULLABLE(m) FIELD(struct badge, m, FIELD_NULL)

static const struct field any_row[] = { B(project_id), NULLABLE(status),
	FIELD_END };
static const struct field one_row[] = { B(project_id), B(environment),
	NULLABLE(status), FIELD_END };

/* Reads backwards from the newest deployment. */
#define LAST(index, which)                                                     \
	"(SELECT d.status FROM deployment d FORCE INDEX (" index ")"           \
	" WHERE " which " AND d.status IN ('success', 'failed',"               \
	" 'interrupted') ORDER BY d.id DESC LIMIT 1) AS status"
#define SHOWN "p.id = ? AND p.valid = 1 AND p.badge = 1"

static const struct field any_args[] = { B(project_id), FIELD_END };
static const struct stmt any = {
	.name = "badge_any",
	.sql = "SELECT p.id AS project_id, " LAST("deployment_project",
	    "d.project_id = p.id") " FROM project p"
				   " WHERE " SHOWN,
	.args = any_args,
	.row = any_row,
	.rowsize = sizeof(struct badge),
};
static const struct field one_args[] = { B(project_id), B(environment),
	FIELD_END };
static const struct stmt one = {
	.name = "badge_environment",
	.sql = "SELECT p.id AS project_id, e.name AS environment, " LAST(
	    "deployment_environment",
	    "d.environment_id = e.id") " FROM project p"
				       " JOIN environment e"
				       " ON e.project_id = p.id"
				       " WHERE " SHOWN " AND e.live_name = ?",
	.args = one_args,
	.row = one_row,
	.rowsize = sizeof(struct badge),
};

static const struct stmt *const badge_stmts[] = { &any, &one, NULL };

const struct store badge_store = {
	.stmts = badge_stmts,
};

const struct err *
badge_find(struct db *db, struct arena *a, struct badge *badge)
{
	const struct badge args = *badge;

	return db_row(db, a, args.environment == NULL ? &any : &one, &args,
	    badge);
}
