/* SPDX-License-Identifier: ISC */
#include "store/figures.h"

#include "store/store.h"

#define G(m) FIELD(struct figures, m, 0, .doc = NULL)

static const struct field figures_row[] = { G(pending), G(running),
	G(oldest_seconds), FIELD_END };

#define OPEN " FORCE INDEX (deployment_status)"
/* Counts unfinished deployments only, which is cheap at any number. */
static const struct stmt read_stmt = {
	.name = "figures_read",
	.sql = "SELECT (SELECT COUNT(*) FROM deployment" OPEN
	       " WHERE status = 'pending') AS pending,"
	       " (SELECT COUNT(*) FROM deployment" OPEN
	       " WHERE status = 'running') AS running,"
	       " COALESCE((SELECT GREATEST(TIMESTAMPDIFF(SECOND, created_at,"
	       " CURRENT_TIMESTAMP(3)), 0) FROM deployment" OPEN
	       " WHERE status = 'pending' AND turn <> 2"
	       " ORDER BY id LIMIT 1), 0)"
	       " AS oldest_seconds",
	.row = figures_row,
	.rowsize = sizeof(struct figures),
};

static const struct stmt *const figures_stmts[] = { &read_stmt, NULL };

const struct store figures_store = {
	.stmts = figures_stmts,
};

const struct err *
figures_read(struct db *db, struct arena *a, struct figures *out)
{
	return db_row(db, a, &read_stmt, NULL, out);
}
