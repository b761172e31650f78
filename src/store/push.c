/* SPDX-License-Identifier: ISC */
#include "store/push.h"

#include "store/move.h"
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

static const struct stmt *const push_stmts[] = { &older, NULL };

const struct store push_store = {
	.stmts = push_stmts,
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
