/* SPDX-License-Identifier: ISC */
#include "store/retention.h"

#include "store/store.h"

#define SWEEP_ARENA ((size_t)64 * 1024)
#define SWEEP_MAX 500 /* deployments per call */
#define TEXT(number) #number
#define NUMBER(macro) TEXT(macro)

/* Arguments of all statements here. */
struct retention_args {
	int64_t id;
	int64_t days;
	int64_t limit;
};
#define A(m) FIELD(struct retention_args, m, 0)

/* A deployment, and whether it is deleted. */
struct candidate {
	int64_t id;
	bool old;     /* created before the retention period */
	bool expired; /* is deleted */
};
#define C(m) FIELD(struct candidate, m, 0)

/* clang-format off */
#define REPEATED "EXISTS (SELECT 1 FROM deployment r"		\
	" FORCE INDEX (deployment_retry) WHERE r.retry_of = d.id)"
/* The deployment that the live one of an environment repeats, the one that it
 * replaced, and the one that this repeats. */
#define CONTENT(d) "IF(" d ".`trigger` = 'rollback', " d ".retry_of, " d ".id)"
#define LIVE								\
	"EXISTS (SELECT 1 FROM environment e"				\
	" JOIN deployment l FORCE INDEX (PRIMARY) ON l.id = e.live_deployment"		\
	" LEFT JOIN deployment o FORCE INDEX (PRIMARY) ON o.id = "	\
	CONTENT("l")							\
	" LEFT JOIN deployment b FORCE INDEX (PRIMARY) ON b.id = o.replaced"			\
	" WHERE e.project_id = d.project_id AND e.valid = 1"		\
	" AND d.id IN (l.id, o.id, b.id, " CONTENT("b") "))"
#define SINCE(index, where)						\
	"d.id > COALESCE((SELECT s.id FROM deployment s FORCE INDEX ("	\
	index ") WHERE " where " AND s.status = 'success'"		\
	" ORDER BY s.id DESC LIMIT 1 OFFSET " NUMBER(RETENTION_KEPT)	\
	"), 0) "
/* The one at OFFSET is the newest that is deleted. */
#define RECENT								\
	"(d.status = 'success' AND IF(d.environment_id IS NULL, "	\
	SINCE("deployment_queue", "s.project_id = d.project_id")	\
	", v.valid = 1 AND "						\
	SINCE("deployment_environment_status",				\
	    "s.environment_id = d.environment_id") "))"
#define SCHEDULED							\
	"EXISTS (SELECT 1 FROM schedule c WHERE c.valid = 1"		\
	" AND c.project_id = d.project_id"				\
	" AND d.id IN (c.last_deployment_id, c.running_deployment_id))"
#define HEAD								\
	"EXISTS (SELECT 1 FROM push_head h"				\
	" WHERE h.project_id = d.project_id AND h.branch = d.branch"	\
	" AND h.commit_hash = d.commit_hash)"
#define STAYS								\
	"(" REPEATED " OR (p.valid = 1 AND (" LIVE " OR " RECENT " OR "	\
	SCHEDULED " OR " HEAD ")))"
#define BEFORE " < NOW(3) - INTERVAL ? DAY"
#define EXPIRED "COALESCE(d.finished_at" BEFORE ", 0) AND NOT " STAYS
#define JOINS								\
	" JOIN project p ON p.id = d.project_id"			\
	" LEFT JOIN environment v ON v.id = d.environment_id"
/* clang-format on */

static const struct field sweep_args[] = { A(days), A(days), A(id), A(limit),
	FIELD_END };
static const struct field candidate_row[] = { C(id), C(old), C(expired),
	FIELD_END };
static const struct stmt sweep = {
	.name = "retention_sweep",
	.sql = "SELECT d.id, d.created_at" BEFORE " AS old, " EXPIRED
	       " AS expired FROM (SELECT id FROM deployment"
	       " FORCE INDEX (PRIMARY) WHERE id > ? ORDER BY id LIMIT ?) t"
	       " STRAIGHT_JOIN deployment d FORCE INDEX (PRIMARY)"
	       " ON d.id = t.id" JOINS " ORDER BY d.id",
	.args = sweep_args,
	.row = candidate_row,
	.rowsize = sizeof(struct candidate),
};
/* A new deployment of the project holds its row, too. */
static const struct field id_args[] = { A(id), FIELD_END };
static const struct stmt hold = {
	.name = "retention_hold",
	.sql = "SELECT p.id FROM project p WHERE p.id ="
	       " (SELECT d.project_id FROM deployment d WHERE d.id = ?)"
	       " FOR UPDATE",
	.args = id_args,
	.row = id_args,
	.rowsize = sizeof(struct retention_args),
};
static const struct field again_args[] = { A(days), A(days), A(id), FIELD_END };
static const struct stmt again = {
	.name = "retention_again",
	.sql = "SELECT d.id, d.created_at" BEFORE " AS old, " EXPIRED
	       " AS expired FROM deployment d" JOINS " WHERE d.id = ?",
	.args = again_args,
	.row = candidate_row,
	.rowsize = sizeof(struct candidate),
};

/* Those that refer to a deployment come before it. */
#define DROP(table)                                                            \
	static const struct stmt drop_##table = {                              \
		.name = "retention_" #table,                                   \
		.sql = "DELETE FROM " #table " WHERE deployment_id = ?",       \
		.args = id_args,                                               \
	}
DROP(log_chunk);
DROP(deployment_step);
DROP(deployment_wait);
DROP(deployment_return);
DROP(commit_status);
DROP(push_caught);
static const struct stmt drop_deployment = {
	.name = "retention_deployment",
	.sql = "DELETE FROM deployment WHERE id = ?",
	.args = id_args,
};
static const struct stmt *const drops[] = { &drop_log_chunk,
	&drop_deployment_step, &drop_deployment_wait, &drop_deployment_return,
	&drop_commit_status, &drop_push_caught, &drop_deployment };

static const struct stmt *const retention_stmts[] = { &sweep, &hold, &again,
	&drop_log_chunk, &drop_deployment_step, &drop_deployment_wait,
	&drop_deployment_return, &drop_commit_status, &drop_push_caught,
	&drop_deployment, NULL };

const struct store retention_store = {
	.stmts = retention_stmts,
};

/* One deployment to delete. */
struct removal {
	struct retention_args args;
	struct arena *a;
	bool removed;
};

/* Decides again under a lock, so that nothing can begin to repeat it. */
static const struct err *
remove_body(struct db *db, void *context)
{
	struct removal *r = context;
	struct retention_args project;
	struct candidate now;
	const struct err *e;
	size_t i;

	r->removed = false;
	e = db_row(db, r->a, &hold, &r->args, &project);
	if (e == NULL)
		e = db_row(db, r->a, &again, &r->args, &now);
	if (e != NULL)
		return e->code == ERR_NOTFOUND ? NULL : e;
	if (!now.expired)
		return NULL;
	for (i = 0; e == NULL && i < sizeof(drops) / sizeof(drops[0]); i++)
		e = db_exec(db, drops[i], &r->args, NULL);
	r->removed = e == NULL;
	return e;
}

const struct err *
retention_sweep(struct db *db, int64_t days, int64_t *after, int64_t *deleted)
{
	const struct retention_args args = { .id = *after,
		.days = days,
		.limit = SWEEP_MAX };
	struct removal one = { .args = args, .a = arena_open(SWEEP_ARENA) };
	const struct candidate *found;
	const struct err *e;
	struct list list;
	size_t i;

	if ((e = db_rows(db, one.a, &sweep, &args, &list)) != NULL)
		goto out;
	found = list.items;
	for (i = 0; e == NULL && i < list.n; i++) {
		one.args.id = found[i].id;
		if (!found[i].expired)
			continue;
		if ((e = db_transaction(db, remove_body, &one)) != NULL)
			goto out;
		*deleted += one.removed ? 1 : 0;
	}
	/* the ones after a young one are younger */
	*after = list.n < SWEEP_MAX || !found[list.n - 1].old ?
	    0 :
	    found[list.n - 1].id;
out:
	arena_close(one.a);
	return e;
}
