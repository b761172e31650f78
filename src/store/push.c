/* SPDX-License-Identifier: ISC */
#include "store/push.h"

#include "store/member.h"
#include "store/move.h"
#include "store/page.h"
#include "store/runner.h"
#include "store/store.h"

struct replaced {
	int64_t id;
	const char *before;
};
#define R(m) FIELD(struct replaced, m, 0)

static const struct field older_args[] = { R(before), R(id), FIELD_END };
static const struct stmt older = {
	.name = "push_older",
	.sql = "SELECT o.id FROM deployment d JOIN deployment o"
	       " ON o.project_id = d.project_id AND o.status = 'pending'"
	       " AND o.id < d.id AND o.trigger_key = d.trigger_key"
	       " AND o.`trigger` = 'webhook'"
	       " AND COALESCE(o.approval, '') <> 'granted'"
	       " AND (d.tag IS NOT NULL OR (o.branch = d.branch"
	       " AND ((d.when_moved = 'follow' AND d.approval IS NULL)"
	       " OR o.commit_hash = ?)))"
	       " WHERE d.id = ? ORDER BY o.id",
	.args = older_args,
	.row = move_id_row,
	.rowsize = sizeof(struct move_id),
};

#define H(m) FIELD(struct push_head, m, 0)
static const struct field head_fields[] = { H(project_id), H(branch),
	H(commit_hash), H(caught_up), FIELD_END };
static const struct field project_args[] = { H(project_id), FIELD_END };
static const struct field branch_args[] = { H(project_id), H(branch),
	FIELD_END };
static const struct field move_args[] = { H(commit_hash), H(project_id),
	H(branch), FIELD_END };
static const struct stmt put = {
	.name = "push_head_put",
	.sql = "REPLACE INTO push_head (project_id, branch, commit_hash,"
	       " caught_up) VALUES (?, ?, ?, ?)",
	.args = head_fields,
};
#define HEADS                                                                  \
	"SELECT project_id, branch, commit_hash, caught_up FROM push_head"     \
	" WHERE project_id = ?"
static const struct stmt find = {
	.name = "push_head_find",
	.sql = HEADS " AND branch = ?",
	.args = branch_args,
	.row = head_fields,
	.rowsize = sizeof(struct push_head),
};
static const struct stmt heads = {
	.name = "push_heads",
	.sql = HEADS " ORDER BY branch",
	.args = project_args,
	.row = head_fields,
	.rowsize = sizeof(struct push_head),
};
static const struct stmt move = {
	.name = "push_head_move",
	.sql = "UPDATE push_head SET commit_hash = ?, caught_up = 0"
	       " WHERE project_id = ? AND branch = ?",
	.args = move_args,
};
static const struct stmt forget = {
	.name = "push_forget",
	.sql = "DELETE FROM push_head WHERE project_id = ?",
	.args = project_args,
};
#define G(m) FIELD(struct push_caught, m, 0)
static const struct field caught_args[] = { G(deployment_id), G(project_id),
	G(branch), G(commit_hash), FIELD_END };
static const struct stmt caught_put = {
	.name = "push_caught_put",
	.sql = "INSERT INTO push_caught (deployment_id, project_id, branch,"
	       " commit_hash) VALUES (?, ?, ?, ?)",
	.args = caught_args,
};
static const struct field caught_of_args[] = { H(project_id), H(commit_hash),
	H(branch), FIELD_END };
static const struct field caught_row[] = { G(deployment_id), G(trigger_key),
	FIELD_END };
static const struct stmt caught_of = {
	.name = "push_caught_of",
	.sql = "SELECT c.deployment_id, d.trigger_key FROM push_caught c"
	       " JOIN deployment d ON d.id = c.deployment_id"
	       " WHERE c.project_id = ? AND c.commit_hash = ?"
	       " AND c.branch = ?",
	.args = caught_of_args,
	.row = caught_row,
	.rowsize = sizeof(struct push_caught),
};

struct current {
	const char *reason; /* reason of deployments that do not count */
	int64_t project_id;
	const char *branch;
	const char *commit_hash;
};
#define C(m) FIELD(struct current, m, 0)
static const struct field current_args[] = { C(project_id), C(branch),
	C(commit_hash), C(reason), C(reason), FIELD_END };
#define OF_PUSH(d)                                                             \
	d ".`trigger` = 'webhook' AND COALESCE(" d ".reason, '') <> ?"
static const struct stmt current = {
	.name = "push_current",
	.sql =
	    "SELECT COUNT(*) AS n FROM deployment d WHERE d.project_id = ?"
	    " AND d.branch = ? AND d.commit_hash = ? AND " OF_PUSH(
		"d") " AND NOT EXISTS (SELECT 1 FROM deployment o"
		     " WHERE o.project_id = d.project_id AND o.id > d.id"
		     " AND o.branch = d.branch AND o.commit_hash <> d.commit_hash"
		     " AND " OF_PUSH("o") " AND o.started_at IS NOT NULL"
					  " AND o.finished_at IS NOT NULL)",
	.args = current_args,
	.row = page_count_row,
	.rowsize = sizeof(struct page_count),
};

#define S(m) FIELD(struct push_source, m, 0)
static const struct field after_args[] = { S(project_id), FIELD_END };
static const struct field source_row[] = { S(project_id), S(repository),
	S(made_by), S(deployer), S(deploy_key), FIELD_END };
static const struct stmt source_next = {
	.name = "push_source_next",
	.sql =
	    "SELECT p.id AS project_id, p.repository, h.made_by,"
	    " u.id AS deployer, k.sealed AS deploy_key"
	    " FROM push_head b JOIN project p ON p.id = b.project_id"
	    " JOIN hook_secret h ON h.project_id = p.id"
	    " LEFT JOIN user u ON u.id = h.made_by"
	    " AND " MEMBER_DEPLOYS(
		"h.project_id") " LEFT JOIN deploy_key k ON k.project_id = p.id"
				" WHERE b.project_id > ? AND p.valid = 1 AND p.triggers <> '[]'"
				" ORDER BY b.project_id LIMIT 1",
	.args = after_args,
	.row = source_row,
	.rowsize = sizeof(struct push_source),
};

struct looker {
	const char *runner;
	int64_t seconds; /* between its looks */
};
#define L(m) FIELD(struct looker, m, 0)
static const struct field runner_args[] = { L(runner), FIELD_END };
static const struct field looked_args[] = { L(runner), L(seconds), L(seconds),
	FIELD_END };
static const struct stmt before_mine = {
	.name = "push_before_mine",
	.sql = "SELECT COUNT(*) AS n FROM runner w"
	       " WHERE w.name < ? AND " RUNNER_ONLINE,
	.args = runner_args,
	.row = page_count_row,
	.rowsize = sizeof(struct page_count),
};

/* Whether it has reported since the last multiple of that time. */
static const struct stmt looked = {
	.name = "push_looked",
	.sql = "SELECT COUNT(*) AS n FROM runner w WHERE w.name = ?"
	       " AND FLOOR(UNIX_TIMESTAMP(w.seen_at) / ?)"
	       " = FLOOR(UNIX_TIMESTAMP(NOW(3)) / ?)",
	.args = looked_args,
	.row = page_count_row,
	.rowsize = sizeof(struct page_count),
};

static const struct stmt *const push_stmts[] = { &older, &put, &find, &heads,
	&caught_put, &caught_of, &move, &forget, &current, &source_next,
	&before_mine, &looked, NULL };

const struct store push_store = {
	.stmts = push_stmts,
	.with_project = push_forget,
};

const struct err *
push_supersede(struct db *db, struct arena *a, int64_t deployment_id,
    const char *before)
{
	const struct replaced args = { .id = deployment_id,
		.before = before != NULL ? before : "" };
	const struct err *e;
	struct list list;

	e = db_rows(db, a, &older, &args, &list);
	return e != NULL ? e : move_cancel(db, &list, REASON_SUPERSEDED);
}

const struct err *
push_head_put(struct db *db, const struct push_head *head)
{
	return db_exec(db, &put, head, NULL);
}

const struct err *
push_head_find(struct db *db, struct arena *a, int64_t project_id,
    const char *branch, struct push_head *out)
{
	const struct push_head args = { .project_id = project_id,
		.branch = branch };

	return db_row(db, a, &find, &args, out);
}

const struct err *
push_heads(struct db *db, struct arena *a, int64_t project_id, struct list *out)
{
	const struct push_head args = { .project_id = project_id };

	return db_rows(db, a, &heads, &args, out);
}

const struct err *
push_caught_put(struct db *db, const struct push_caught *caught)
{
	return db_exec(db, &caught_put, caught, NULL);
}

const struct err *
push_caught_of(struct db *db, struct arena *a, const struct push_head *head,
    struct list *out)
{
	return db_rows(db, a, &caught_of, head, out);
}

const struct err *
push_head_move(struct db *db, const struct push_head *head)
{
	return db_exec(db, &move, head, NULL);
}

const struct err *
push_forget(struct db *db, int64_t project_id)
{
	const struct push_head args = { .project_id = project_id };

	return db_exec(db, &forget, &args, NULL);
}

/* Whether the statement counts anything. */
static const struct err *
any(struct db *db, struct arena *a, const struct stmt *count, const void *args,
    bool *out)
{
	struct page_count found = { .n = 0 };
	const struct err *e = db_row(db, a, count, args, &found);

	*out = found.n > 0;
	return e;
}

const struct err *
push_is_current(struct db *db, struct arena *a, const struct push_head *head,
    bool *out)
{
	const struct current args = {
		.reason = reason_kinds[REASON_SUPERSEDED].name,
		.project_id = head->project_id,
		.branch = head->branch,
		.commit_hash = head->commit_hash,
	};

	return any(db, a, &current, &args, out);
}

const struct err *
push_source_next(struct db *db, struct arena *a, int64_t after,
    struct push_source *out)
{
	const struct push_source args = { .project_id = after };

	return db_row(db, a, &source_next, &args, out);
}

const struct err *
push_is_others(struct db *db, struct arena *a, const char *runner, bool *out)
{
	const struct looker args = { .runner = runner };

	return any(db, a, &before_mine, &args, out);
}

const struct err *
push_is_looked(struct db *db, struct arena *a, const char *runner,
    int64_t seconds, bool *out)
{
	const struct looker args = { runner, seconds };

	return any(db, a, &looked, &args, out);
}
