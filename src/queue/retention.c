/* SPDX-License-Identifier: ISC */
#include "queue/retention.h"

#include "queue/stores.h"

#define SWEEP_ARENA ((size_t)64 * 1024)
#define SWEEP_MAX 500 /* deployments per call */

/* Arguments of all statements here. */
struct retention_args {
	int64_t id;
	int64_t days;
	int64_t limit;
};

/* A deployment, and whether it is deleted. */
struct candidate {
	int64_t id;
	bool old;     /* created before the retention period */
	bool expired; /* is deleted */
};

#include "queue/retention.sql.h"

_Static_assert(SQL_RETENTION_KEPT == RETENTION_KEPT, "see retention.sql");

/* Those that refer to a deployment come before it. */
static const struct stmt *const drops[] = { &sql_retention_log_chunk,
	&sql_retention_deployment_step, &sql_retention_deployment_wait,
	&sql_retention_deployment_return, &sql_retention_commit_status,
	&sql_retention_push_caught, &sql_retention_deployment };

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
	e = db_row(db, r->a, &sql_retention_hold, &r->args, &project);
	if (e == NULL)
		e = db_row(db, r->a, &sql_retention_again, &r->args, &now);
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

	if ((e = db_rows(db, one.a, &sql_retention_sweep, &args, &list)) !=
	    NULL)
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
