/* SPDX-License-Identifier: ISC */
#include "store/lock.h"

#include "store/move.h"
#include "store/notice.h"
#include "store/store.h"

/* clang-format off */
#define L(m, ...) FIELD(struct deploy_lock, m, __VA_ARGS__)
static const struct field lock_fields[] = {
	L(reason, FIELD_OUT | FIELD_IN | FIELD_MUST | FIELD_LINE, .min = 1,
	    .max = 500, .doc = "Why deployments must wait."),
	L(by, FIELD_OUT, .doc = "Name of the user who set it."),
	L(since, FIELD_OUT, .doc = "Time at which it was set."),
	L(until, FIELD_OUT | FIELD_IN | FIELD_NULL,
	    .doc = "Time at which it expires; null = it does not."),
	FIELD_END,
};
/* clang-format on */
const struct shape lock_shape = {
	.name = "Lock",
	.fields = lock_fields,
	.size = sizeof(struct deploy_lock),
	.doc = "A lock that keeps new deployments from starting.",
};

#define PLACE LOCK_PLACE("COALESCE(?, 0)", "COALESCE(?, 0)")

static const struct field place_args[] = { L(project_id, 0),
	L(environment_id, 0), FIELD_END };
static const struct field lock_row[] = { L(project_id, 0), L(environment_id, 0),
	L(reason, 0), L(by, 0), L(since, 0), L(until, FIELD_NULL), FIELD_END };
#define SELECT                                                                 \
	"SELECT COALESCE(k.project_id, 0) AS project_id,"                      \
	" COALESCE(k.environment_id, 0) AS environment_id, " LOCK_COLUMNS      \
	" FROM deploy_lock k" LOCK_JOIN_USER " WHERE " LOCK_ACTIVE
static const struct stmt at = {
	.name = "lock_at",
	.sql = SELECT " AND k.place = " PLACE,
	.args = place_args,
	.row = lock_row,
	.rowsize = sizeof(struct deploy_lock),
};
/* The widest first. */
static const struct stmt over = {
	.name = "lock_over",
	.sql = SELECT " AND (k.project_id IS NULL OR (k.project_id = ?"
		      " AND (k.environment_id IS NULL"
		      " OR k.environment_id = ?)))"
		      " ORDER BY k.project_id, k.environment_id LIMIT 1",
	.args = place_args,
	.row = lock_row,
	.rowsize = sizeof(struct deploy_lock),
};
/* Changes of the lock of the service lock this row first; those of other locks
 * lock the project. */
static const struct stmt queue_up = {
	.name = "lock_queue_up",
	.sql = "INSERT INTO commit_token (token) VALUES ('service lock')"
	       " ON DUPLICATE KEY UPDATE created_at = CURRENT_TIMESTAMP(3)",
};
static const struct field put_args[] = { L(project_id, 0), L(environment_id, 0),
	L(project_id, 0), L(environment_id, 0), L(reason, 0), L(locked_by, 0),
	L(until, FIELD_NULL), FIELD_END };
static const struct stmt put = {
	.name = "lock_put",
	.sql = "REPLACE INTO deploy_lock (place, project_id, environment_id,"
	       " reason, locked_by, `until`) VALUES (" PLACE
	       ", NULLIF(?, 0), NULLIF(?, 0), ?, ?, ?)",
	.args = put_args,
};
static const struct stmt remove_lock = {
	.name = "lock_remove",
	.sql = "DELETE k FROM deploy_lock k WHERE k.place = " PLACE
	       " AND " LOCK_ACTIVE,
	.args = place_args,
};
/* clang-format off */
#define EXPIRED "k.`until` <= NOW(3)"
/* clang-format on */
static const struct field expired_row[] = { L(project_id, 0),
	L(environment_id, 0), FIELD_END };
static const struct stmt expired = {
	.name = "lock_expired",
	.sql = "SELECT COALESCE(k.project_id, 0) AS project_id,"
	       " COALESCE(k.environment_id, 0) AS environment_id"
	       " FROM deploy_lock k WHERE " EXPIRED " LIMIT 100",
	.row = expired_row,
	.rowsize = sizeof(struct deploy_lock),
};
static const struct stmt expire = {
	.name = "lock_expire",
	.sql = "DELETE k FROM deploy_lock k WHERE k.place = " PLACE
	       " AND " EXPIRED,
	.args = place_args,
};
static const struct field project_args[] = { L(project_id, 0), FIELD_END };
static const struct stmt remove_of = {
	.name = "lock_remove_of",
	.sql = "DELETE FROM deploy_lock WHERE project_id = ?",
	.args = project_args,
};
/* The order in which events arrive proves nothing, but each names the commit
 * that it replaced. Several triggers may match one push, with the same place
 * and different variables: their deployments have the same commit. */
struct replaced {
	int64_t id;
	const char *before;
};
static const struct field older_args[] = {
	FIELD(struct replaced, before, 0),
	FIELD(struct replaced, id, 0),
	FIELD_END,
};
static const struct stmt older = {
	.name = "lock_older",
	.sql = "SELECT o.id FROM deployment d JOIN deployment o"
	       " ON o.project_id = d.project_id AND o.status = 'pending'"
	       " AND o.id < d.id AND o.`trigger` IN ('webhook', 'schedule')"
	       " AND o.pipeline_id = d.pipeline_id AND o.branch <=> d.branch"
	       " AND o.tag <=> d.tag"
	       " AND o.environment_id <=> d.environment_id"
	       " AND COALESCE(o.approval, '') <> 'granted'"
	       " AND COALESCE(o.commit_hash <> d.commit_hash, 1)"
	       " AND (d.commit_hash IS NULL OR o.commit_hash = ?)"
	       " WHERE d.id = ? ORDER BY o.id",
	.args = older_args,
	.row = move_id_row,
	.rowsize = sizeof(struct move_id),
};

static const struct stmt *const lock_stmts[] = { &at, &over, &queue_up, &put,
	&remove_lock, &expired, &expire, &remove_of, &older, NULL };

/* Removes the locks of a deleted project and its environments. */
static const struct err *
remove_of_project(struct db *db, int64_t project_id)
{
	const struct deploy_lock args = { .project_id = project_id };

	return db_exec(db, &remove_of, &args, NULL);
}

const struct store lock_store = {
	.stmts = lock_stmts,
	.with_project = remove_of_project,
};

const char *
lock_scope(const struct deploy_lock *lock)
{
	if (lock->project_id == 0)
		return "service";
	return lock->environment_id == 0 ? "project" : "environment";
}

struct audit_object_ref
lock_object(const struct deploy_lock *lock)
{
	if (lock->environment_id != 0)
		return (struct audit_object_ref){ AUDIT_OF_ENVIRONMENT,
			lock->environment_id, lock->project_id };
	if (lock->project_id != 0)
		return (struct audit_object_ref){ AUDIT_OF_PROJECT,
			lock->project_id, lock->project_id };
	return (struct audit_object_ref){ AUDIT_OF_SERVICE, 0, 0 };
}

struct list
lock_joined(struct deploy_lock *lock)
{
	return (
	    struct list){ .items = lock, .n = lock->reason != NULL ? 1 : 0 };
}

const struct err *
lock_at(struct db *db, struct arena *a, int64_t project_id,
    int64_t environment_id, struct deploy_lock *out)
{
	const struct deploy_lock args = { .project_id = project_id,
		.environment_id = environment_id };

	return db_row(db, a, &at, &args, out);
}

const struct err *
lock_over(struct db *db, struct arena *a, int64_t project_id,
    int64_t environment_id, struct deploy_lock *out)
{
	const struct deploy_lock args = { .project_id = project_id,
		.environment_id = environment_id };

	return db_row(db, a, &over, &args, out);
}

const struct err *
lock_queue_up(struct db *db)
{
	return db_exec(db, &queue_up, NULL, NULL);
}

const struct err *
lock_put(struct db *db, const struct deploy_lock *lock)
{
	const struct err *e;

	if ((e = db_exec(db, &put, lock, NULL)) != NULL)
		return e;
	return notice_want_lock(db, lock);
}

const struct err *
lock_remove(struct db *db, int64_t project_id, int64_t environment_id)
{
	const struct deploy_lock args = { .project_id = project_id,
		.environment_id = environment_id };
	const struct err *e;
	struct db_done done;

	if ((e = db_exec(db, &remove_lock, &args, &done)) != NULL)
		return e;
	return done.affected > 0 ? NULL : err_new(ERR_NOTFOUND, "no lock");
}

struct expiry {
	const struct deploy_lock *lock;
	const char *runner;
};

/* Another runner may have deleted it, or a user set it again. */
static const struct err *
expire_body(struct db *db, void *context)
{
	const struct expiry *x = context;
	const struct audit entry = { .via = AUDIT_RUNNER,
		.username = x->runner,
		.action = "expireLock" };
	const struct audit_object_ref object = lock_object(x->lock);
	const struct err *e;
	struct db_done done;

	if ((e = db_exec(db, &expire, x->lock, &done)) != NULL ||
	    done.affected == 0)
		return e;
	return audit_write(db, &entry, &object);
}

const struct err *
lock_expire(struct db *db, struct arena *a, const char *runner)
{
	struct expiry x = { .runner = runner };
	const struct deploy_lock *found;
	const struct err *e;
	struct list list;
	size_t i;

	e = db_rows(db, a, &expired, NULL, &list);
	found = list.items;
	for (i = 0; e == NULL && i < list.n; i++) {
		x.lock = &found[i];
		e = db_transaction(db, expire_body, &x);
	}
	return e;
}

const struct err *
lock_keep_newest(struct db *db, struct arena *a, int64_t deployment_id,
    const char *before)
{
	const struct replaced args = { .id = deployment_id,
		.before = before != NULL ? before : "" };
	const struct err *e;
	struct list list;

	e = db_rows(db, a, &older, &args, &list);
	return e != NULL ? e : move_cancel(db, &list, REASON_SUPERSEDED);
}
