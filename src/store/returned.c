/* SPDX-License-Identifier: ISC */
#include "store/returned.h"

#include "store/page.h"
#include "store/runner.h"
#include "store/store.h"

struct returned_args {
	int64_t deployment_id;
	const char *runner;
};

#define A(m) FIELD(struct returned_args, m, 0)
#define R(m) FIELD(struct returned, m, 0)

static const struct field count_args[] = { A(deployment_id), A(runner),
	A(runner), A(deployment_id), FIELD_END };
static const struct field count_row[] = { R(n), R(others), FIELD_END };
/* clang-format off */
static const struct stmt count = {
	.name = "returned_count",
	.sql = DB_COMPOUND
	    "INSERT INTO deployment_return (deployment_id, n, runner,"
	    " returned_at) VALUES (?, 1, ?, NOW(3))"
	    " ON DUPLICATE KEY UPDATE n = n + 1, runner = VALUES(runner),"
	    " returned_at = VALUES(returned_at);"
	    " SELECT t.n, EXISTS (SELECT 1 FROM runner w WHERE " RUNNER_ONLINE
	    " AND " RUNNER_WELL " AND w.slots > 0 AND w.name <> ? AND "
	    RUNNER_FITS("w.name", "w.labels") ") AS others"
	    " FROM deployment_return t JOIN deployment d"
	    " ON d.id = t.deployment_id"
	    " LEFT JOIN environment e ON e.id = d.environment_id"
	    " WHERE t.deployment_id = ?; END",
	.args = count_args,
	.row = count_row,
	.rowsize = sizeof(struct returned),
};
/* clang-format on */

#define OLD " returned_at < NOW(3) - INTERVAL 7 DAY"
static const struct stmt old = {
	.name = "returned_old",
	.sql = "SELECT COUNT(*) AS n FROM (SELECT 1 FROM deployment_return"
	       " WHERE" OLD " LIMIT 1) t",
	.row = page_count_row,
	.rowsize = sizeof(struct page_count),
};
static const struct stmt tidy = {
	.name = "returned_tidy",
	.sql = "DELETE FROM deployment_return WHERE" OLD
	       " ORDER BY returned_at LIMIT 1000",
};

static const struct stmt *const returned_stmts[] = { &count, &old, &tidy,
	NULL };

const struct store returned_store = {
	.stmts = returned_stmts,
};

const struct err *
returned_count(struct db *db, struct arena *a, int64_t deployment_id,
    const char *runner, struct returned *out)
{
	const struct returned_args args = { .deployment_id = deployment_id,
		.runner = runner };

	return db_row(db, a, &count, &args, out);
}

const struct err *
returned_tidy(struct db *db, struct arena *a)
{
	struct page_count row;
	const struct err *e;

	e = db_row(db, a, &old, NULL, &row);
	return e != NULL || row.n == 0 ? e : db_exec(db, &tidy, NULL, NULL);
}
