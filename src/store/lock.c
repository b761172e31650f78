/* SPDX-License-Identifier: ISC */
#include "store/lock.h"

#include "store/store.h"

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
const struct shape lock_shape = {
	.name = "Lock",
	.fields = lock_fields,
	.size = sizeof(struct deploy_lock),
	.doc = "A lock that keeps new deployments from starting.",
};

#include "store/lock.sql.h"

/* Removes the locks of a deleted project and its environments. */
static const struct err *
remove_of_project(struct db *db, int64_t project_id)
{
	const struct deploy_lock args = { .project_id = project_id };

	return db_exec(db, &sql_lock_remove_of, &args, NULL);
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

	return db_row(db, a, &sql_lock_at, &args, out);
}

const struct err *
lock_over(struct db *db, struct arena *a, int64_t project_id,
    int64_t environment_id, struct deploy_lock *out)
{
	const struct deploy_lock args = { .project_id = project_id,
		.environment_id = environment_id };

	return db_row(db, a, &sql_lock_over, &args, out);
}

const struct err *
lock_queue_up(struct db *db)
{
	return db_exec(db, &sql_lock_queue_up, NULL, NULL);
}

const struct err *
lock_put(struct db *db, const struct deploy_lock *lock)
{
	return db_exec(db, &sql_lock_put, lock, NULL);
}

const struct err *
lock_remove(struct db *db, int64_t project_id, int64_t environment_id)
{
	const struct deploy_lock args = { .project_id = project_id,
		.environment_id = environment_id };
	const struct err *e;
	struct db_done done;

	if ((e = db_exec(db, &sql_lock_remove, &args, &done)) != NULL)
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

	if ((e = db_exec(db, &sql_lock_expire, x->lock, &done)) != NULL ||
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

	e = db_rows(db, a, &sql_lock_expired, NULL, &list);
	found = list.items;
	for (i = 0; e == NULL && i < list.n; i++) {
		x.lock = &found[i];
		e = db_transaction(db, expire_body, &x);
	}
	return e;
}
