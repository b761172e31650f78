/* SPDX-License-Identifier: ISC */
#include "store/schedule.h"

#include "store/child.h"
#include "store/columns.h"
#include "store/store.h"

#define A(m) FIELD(struct schedule, m, 0)

/* clang-format off */
#define SCHEDULE(X, T)							\
	X(T, KEY, id, FIELD_OUT, .doc = "Id of the schedule.")		\
	X(T, ONCE, project_id,						\
	    FIELD_OUT | FIELD_IN | FIELD_MUST | FIELD_ONCE, .min = 1,	\
	    .doc = "Project to deploy.")				\
	X(T, SET, pipeline_id, FIELD_OUT | FIELD_IN | FIELD_MUST,	\
	    .min = 1, .doc = "Pipeline to run.")			\
	X(T, SET, environment_id, FIELD_OUT | FIELD_IN | FIELD_NULL,	\
	    .min = 1,							\
	    .doc = "Environment to deploy to; required if the project has " \
		   "several.")						\
	X(T, SET, name, FIELD_OUT | FIELD_IN | FIELD_MUST | FIELD_LINE,	\
	    .min = 1, .max = 100,					\
	    .doc = "Name, unique in its project regardless of case.")	\
	X(T, SET, cron, FIELD_OUT | FIELD_IN | FIELD_MUST | FIELD_LINE,	\
	    .min = 1, .max = 255,					\
	    .doc = "When it fires: the five fields of crontab(5), or "	\
		   "@hourly, @daily, @weekly, @monthly or @yearly.")	\
	X(T, SET, timezone, FIELD_OUT | FIELD_IN, .min = 1, .max = 63,	\
	    .doc = "Time zone of the times, an IANA name; default UTC.") \
	X(T, SET, branch, FIELD_OUT | FIELD_IN | FIELD_NULL, .min = 1,	\
	    .max = 255, .shown = FIELD_BRANCH,				\
	    .doc = "Branch to deploy; null = the project's default.")	\
	X(T, NONE, env_vars, FIELD_OUT | FIELD_IN, .max = 1000,		\
	    .doc = "Environment variables of the deployments.")		\
	X(T, SET, variables, 0)						\
	X(T, SET, active, FIELD_OUT | FIELD_IN | FIELD_TRUE,		\
	    .doc = "Whether it fires; default true.")			\
	X(T, SET, next_at, FIELD_OUT | FIELD_NULL,			\
	    .doc = "Time at which it fires next; null if it is not active.") \
	X(T, READ, last_deployment_id, FIELD_OUT | FIELD_NULL,		\
	    .doc = "The last deployment that it started.")		\
	X(T, NONE, failures, FIELD_OUT,					\
	    .doc = "How many of its last deployments failed in a row.")	\
	X(T, READ, last_error, FIELD_OUT | FIELD_NULL,			\
	    .doc = "Why it started no deployment the last time.")	\
	X(T, READ, valid, FIELD_OUT | FIELD_NUMBER,			\
	    .doc = "1; 0 if deleted.")					\
	X(T, READ, created_at, FIELD_OUT, .doc = "Time of creation.")	\
	X(T, READ, updated_at, FIELD_OUT, .doc = "Time of the last change.") \
	X(T, ONCE, created_by, FIELD_OUT | FIELD_NULL,			\
	    .doc = "User who created it.")				\
	X(T, READ, version, 0, .doc = "Number of changes.")

static const struct field schedule_fields[] = {
	COLUMNS_FIELDS(SCHEDULE, struct schedule)
};
static const struct field row_fields[] = {
	SCHEDULE(COLUMN_FIELD, struct schedule)
	A(failures),
	A(now),
	FIELD_END,
};
/* clang-format on */

const struct shape schedule_shape = {
	.name = "Schedule",
	.fields = schedule_fields,
	.size = sizeof(struct schedule),
	.doc = "Deployments that start at certain times.",
};

/* clang-format off */
#define WITH(id, failures)						\
	"CASE (SELECT d.status FROM deployment d WHERE d.id = " id ")"	\
	" WHEN 'success' THEN 0"					\
	" WHEN 'failed' THEN " failures " + 1"				\
	" WHEN 'interrupted' THEN " failures " + 1"			\
	" ELSE " failures " END"
/* Failed deployments in a row, with the last one, and with the one that ran when
 * that was created. */
#define FAILURES							\
	WITH("c.last_deployment_id",					\
	    "(" WITH("c.running_deployment_id", "c.failures") ")")
/* clang-format on */
#define SELECT                                                                 \
	"SELECT " COLUMNS_OF("c", SCHEDULE) ", " FAILURES " AS failures,"      \
					    " NOW(3) AS now FROM schedule c"

static const struct field id_args[] = { A(id), FIELD_END };
static const struct stmt by_id = {
	.name = "schedule_by_id",
	.sql = SELECT " WHERE c.id = ? AND c.valid = 1",
	.args = id_args,
	.row = row_fields,
	.rowsize = sizeof(struct schedule),
};
static const struct stmt lock = {
	.name = "schedule_lock",
	.sql = "SELECT id FROM schedule WHERE id = ? AND valid = 1 FOR UPDATE",
	.args = id_args,
	.row = id_args,
	.rowsize = sizeof(struct schedule),
};
/* clang-format off */
CHILD(schedule, SELECT, row_fields, "c.name, c.id", "c.name, c.id")

static const struct field insert_args[] = {
	COLUMNS_INSERT_ARGS(SCHEDULE, struct schedule)
};
static const struct field update_args[] = {
	COLUMNS_UPDATE_ARGS(SCHEDULE, struct schedule)
};
/* clang-format on */
static const struct stmt insert = {
	.name = "schedule_insert",
	.sql = COLUMNS_INSERT("schedule", SCHEDULE),
	.args = insert_args,
};
static const struct stmt update = {
	.name = "schedule_update",
	.sql = COLUMNS_UPDATE("schedule", SCHEDULE),
	.args = update_args,
};

struct left {
	struct maybe ms;
};
static const struct field left_row[] = { FIELD(struct left, ms, FIELD_NULL),
	FIELD_END };
static const struct stmt left = {
	.name = "schedule_left",
	.sql = "SELECT TIMESTAMPDIFF(MICROSECOND, NOW(3), MIN(next_at))"
	       " DIV 1000 AS ms FROM schedule WHERE valid = 1 AND active = 1",
	.row = left_row,
	.rowsize = sizeof(struct left),
};
static const struct stmt due = {
	.name = "schedule_due",
	.sql = SELECT " WHERE c.valid = 1 AND c.active = 1"
		      " AND c.next_at <= NOW(3) AND c.id > ?"
		      " ORDER BY c.id LIMIT 1",
	.args = id_args,
	.row = row_fields,
	.rowsize = sizeof(struct schedule),
};

static const struct stmt later = {
	.name = "schedule_later",
	.sql = SELECT " WHERE c.valid = 1 AND c.active = 1"
		      " AND c.next_at > NOW(3) AND c.id > ?"
		      " ORDER BY c.id LIMIT 100",
	.args = id_args,
	.row = row_fields,
	.rowsize = sizeof(struct schedule),
};
_Static_assert(SCHEDULE_CHECKED == 100, "the limit of schedule_later");
static const struct field clock_row[] = { A(now), FIELD_END };
static const struct stmt clock_now = {
	.name = "schedule_clock",
	.sql = "SELECT NOW(3) AS now",
	.row = clock_row,
	.rowsize = sizeof(struct schedule),
};

struct taking {
	struct when next;
	int64_t id;
	int64_t version;
	struct when next_at;
};
#define T(m) FIELD(struct taking, m, 0)
static const struct field take_args[] = { T(next), T(id), T(version),
	T(next_at), FIELD_END };
static const struct stmt take = {
	.name = "schedule_take",
	.sql = "UPDATE schedule SET next_at = ? WHERE id = ? AND version = ?"
	       " AND next_at = ? AND active = 1 AND valid = 1",
	.args = take_args,
};
static const struct field unfired_args[] = { A(last_error), A(id), A(version),
	A(next_at), FIELD_END };
static const struct stmt unfired = {
	.name = "schedule_unfired",
	.sql = "UPDATE schedule SET last_error = ? WHERE id = ? AND version = ?"
	       " AND next_at = ?",
	.args = unfired_args,
};
static const struct field rejected_args[] = { A(last_error), A(id), FIELD_END };
static const struct stmt rejected = {
	.name = "schedule_rejected",
	.sql = "UPDATE schedule SET last_error = ? WHERE id = ?",
	.args = rejected_args,
};
/* In this order: each expression reads what those before it have set. */
static const struct field fired_args[] = { A(last_deployment_id), A(id),
	FIELD_END };
static const struct stmt fired = {
	.name = "schedule_fired",
	.sql = "UPDATE schedule c SET c.failures = " FAILURES
	       ", c.running_deployment_id = (SELECT MAX(d.id)"
	       " FROM deployment d WHERE d.status = 'running' AND d.id"
	       " IN (c.running_deployment_id, c.last_deployment_id)),"
	       " c.last_deployment_id = ?, c.last_error = NULL WHERE c.id = ?",
	.args = fired_args,
};

static const struct stmt *const schedule_stmts[] = { &by_id, &lock, CHILD_STMTS,
	&insert, &update, &left, &due, &later, &clock_now, &take, &unfired,
	&rejected, &fired, NULL };

static const struct err *
delete_of_project(struct db *db, int64_t project_id)
{
	return child_delete(db, &delete_of, project_id);
}

const struct store schedule_store = {
	.stmts = schedule_stmts,
	.with_project = delete_of_project,
};

const struct err *
schedule_page(struct db *db, struct arena *a, int64_t project_id,
    struct page *p, struct list *out)
{
	return child_read(db, a, &child, project_id, p, out);
}

const struct err *
schedule_by_id(struct db *db, struct arena *a, int64_t id, struct schedule *out)
{
	const struct schedule args = { .id = id };

	return db_row(db, a, &by_id, &args, out);
}

const struct err *
schedule_lock(struct db *db, struct arena *a, int64_t id, struct schedule *out)
{
	const struct schedule args = { .id = id };
	const struct err *e;

	if ((e = db_row(db, a, &lock, &args, out)) != NULL)
		return e;
	return schedule_by_id(db, a, id, out);
}

const struct err *
schedule_name_judge(struct db *db, const struct schedule *s,
    struct faults *faults)
{
	return child_judge(db, &child, s->id, s->project_id, s->name, faults);
}

const struct err *
schedule_insert(struct db *db, const struct schedule *s, int64_t *id)
{
	const struct err *e;
	struct db_done done;

	e = db_exec(db, &insert, s, &done);
	*id = e == NULL ? done.insert_id : 0;
	return e;
}

const struct err *
schedule_update(struct db *db, const struct schedule *s)
{
	return db_exec(db, &update, s, NULL);
}

const struct err *
schedule_delete(struct db *db, int64_t id)
{
	return child_delete(db, &delete_one, id);
}

const struct err *
schedule_wait(struct db *db, struct arena *a, struct maybe *out)
{
	const struct err *e;
	struct left row;

	e = db_row(db, a, &left, NULL, &row);
	*out = e == NULL ? row.ms : (struct maybe){ .set = false };
	return e;
}

const struct err *
schedule_clock(struct db *db, struct arena *a, struct when *out)
{
	const struct err *e;
	struct schedule row;

	*out = (struct when){ 0 };
	if ((e = db_row(db, a, &clock_now, NULL, &row)) == NULL)
		*out = row.now;
	return e;
}

const struct err *
schedule_later(struct db *db, struct arena *a, int64_t after, struct list *out)
{
	const struct schedule args = { .id = after };

	return db_rows(db, a, &later, &args, out);
}

const struct err *
schedule_due(struct db *db, struct arena *a, int64_t after,
    struct schedule *out)
{
	const struct schedule args = { .id = after };

	return db_row(db, a, &due, &args, out);
}

const struct err *
schedule_take(struct db *db, const struct schedule *s, struct when next,
    bool *taken)
{
	const struct taking args = { .next = next,
		.id = s->id,
		.version = s->version,
		.next_at = s->next_at };
	const struct err *e;
	struct db_done done;

	e = db_exec(db, &take, &args, &done);
	*taken = e == NULL && done.affected > 0;
	return e;
}

const struct err *
schedule_fired(struct db *db, int64_t id, int64_t deployment_id)
{
	const struct schedule args = { .id = id,
		.last_deployment_id = { deployment_id, true } };

	return db_exec(db, &fired, &args, NULL);
}

const struct err *
schedule_rejected(struct db *db, int64_t id, const char *why)
{
	const struct schedule args = { .id = id, .last_error = why };

	return db_exec(db, &rejected, &args, NULL);
}

const struct err *
schedule_unfired(struct db *db, const struct schedule *s, const char *why)
{
	struct schedule args = *s;

	args.last_error = why;
	return db_exec(db, &unfired, &args, NULL);
}
