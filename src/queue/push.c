/* SPDX-License-Identifier: ISC */
#include "queue/push.h"

#include "queue/move.h"
#include "queue/stores.h"
#include "store/member.h"
#include "store/page.h"
#include "store/runner.h"

struct replaced {
	int64_t id;
	const char *before;
};
struct current {
	const char *reason; /* reason of deployments that do not count */
	int64_t project_id;
	const char *branch;
	const char *commit_hash;
};
struct looker {
	const char *runner;
	int64_t seconds; /* between its looks */
};

#include "queue/push.sql.h"

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

	e = db_rows(db, a, &sql_push_older, &args, &list);
	return e != NULL ? e : move_cancel(db, &list, REASON_SUPERSEDED);
}

const struct err *
push_head_put(struct db *db, const struct push_head *head)
{
	return db_exec(db, &sql_push_head_put, head, NULL);
}

const struct err *
push_head_find(struct db *db, struct arena *a, int64_t project_id,
    const char *branch, struct push_head *out)
{
	const struct push_head args = { .project_id = project_id,
		.branch = branch };

	return db_row(db, a, &sql_push_head_find, &args, out);
}

const struct err *
push_heads(struct db *db, struct arena *a, int64_t project_id, struct list *out)
{
	const struct push_head args = { .project_id = project_id };

	return db_rows(db, a, &sql_push_heads, &args, out);
}

const struct err *
push_caught_put(struct db *db, const struct push_caught *caught)
{
	return db_exec(db, &sql_push_caught_put, caught, NULL);
}

const struct err *
push_caught_of(struct db *db, struct arena *a, const struct push_head *head,
    struct list *out)
{
	return db_rows(db, a, &sql_push_caught_of, head, out);
}

const struct err *
push_head_move(struct db *db, const struct push_head *head)
{
	return db_exec(db, &sql_push_head_move, head, NULL);
}

const struct err *
push_forget(struct db *db, int64_t project_id)
{
	const struct push_head args = { .project_id = project_id };

	return db_exec(db, &sql_push_forget, &args, NULL);
}

/* Whether the statement counts anything. */
static const struct err *
is_any(struct db *db, struct arena *a, const struct stmt *count,
    const void *args, bool *out)
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

	return is_any(db, a, &sql_push_current, &args, out);
}

const struct err *
push_source_next(struct db *db, struct arena *a, int64_t after,
    struct push_source *out)
{
	const struct push_source args = { .project_id = after };

	return db_row(db, a, &sql_push_source_next, &args, out);
}

const struct err *
push_is_others(struct db *db, struct arena *a, const char *runner, bool *out)
{
	const struct looker args = { .runner = runner };

	return is_any(db, a, &sql_push_before_mine, &args, out);
}

const struct err *
push_is_looked(struct db *db, struct arena *a, const char *runner,
    int64_t seconds, bool *out)
{
	const struct looker args = { runner, seconds };

	return is_any(db, a, &sql_push_looked, &args, out);
}
