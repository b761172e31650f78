/* SPDX-License-Identifier: ISC */
#include "store/schedule.h"

#include "store/child.h"
#include "store/store.h"

#define S(m, ...) FIELD(struct schedule, m, __VA_ARGS__)
static const struct field schedule_fields[] = {
	S(id, FIELD_OUT, .doc = "Id of the schedule."),
	S(project_id, FIELD_OUT | FIELD_IN | FIELD_MUST | FIELD_ONCE, .min = 1,
	    .doc = "Project to deploy."),
	S(pipeline_id, FIELD_OUT | FIELD_IN | FIELD_MUST, .min = 1,
	    .doc = "Pipeline to run."),
	S(environment_id, FIELD_OUT | FIELD_IN | FIELD_NULL, .min = 1,
	    .doc = "Environment to deploy to; required if the project has "
		   "several."),
	S(name, FIELD_OUT | FIELD_IN | FIELD_MUST | FIELD_LINE, .min = 1,
	    .max = 100,
	    .doc = "Name, unique in its project regardless of case."),
	S(cron, FIELD_OUT | FIELD_IN | FIELD_MUST | FIELD_LINE, .min = 1,
	    .max = 255,
	    .doc = "When it fires: the five fields of crontab(5), or "
		   "@hourly, @daily, @weekly, @monthly or @yearly."),
	S(timezone, FIELD_OUT | FIELD_IN, .min = 1, .max = 63,
	    .doc = "Time zone of the times, an IANA name; default UTC."),
	S(branch, FIELD_OUT | FIELD_IN | FIELD_NULL, .min = 1, .max = 255,
	    .shown = FIELD_BRANCH,
	    .doc = "Branch to deploy; null = the project's default."),
	S(env_vars, FIELD_OUT | FIELD_IN, .max = 1000,
	    .doc = "Environment variables of the deployments."),
	S(active, FIELD_OUT | FIELD_IN | FIELD_TRUE,
	    .doc = "Whether it fires; default true."),
	S(next_at, FIELD_OUT | FIELD_NULL,
	    .doc = "Time at which it fires next; null if it is not active."),
	S(last_deployment_id, FIELD_OUT | FIELD_NULL,
	    .doc = "The last deployment that it started."),
	S(failures, FIELD_OUT,
	    .doc = "How many of its last deployments failed in a row."),
	S(last_error, FIELD_OUT | FIELD_NULL,
	    .doc = "Why it started no deployment the last time."),
	S(valid, FIELD_OUT | FIELD_NUMBER, .doc = "1; 0 if deleted."),
	S(created_at, FIELD_OUT, .doc = "Time of creation."),
	S(updated_at, FIELD_OUT, .doc = "Time of the last change."),
	S(created_by, FIELD_OUT | FIELD_NULL, .doc = "User who created it."),
	FIELD_END,
};
const struct shape schedule_shape = {
	.name = "Schedule",
	.fields = schedule_fields,
	.size = sizeof(struct schedule),
	.doc = "Deployments that start at certain times.",
};

struct left {
	struct maybe ms;
};
struct taking {
	struct when next;
	int64_t id;
	int64_t version;
	struct when next_at;
};

#include "store/schedule.sql.h"

_Static_assert(SQL_SCHEDULE_CHECKED == SCHEDULE_CHECKED, "see schedule.sql");

static const struct child child = CHILD(schedule);

static const struct err *
delete_of_project(struct db *db, int64_t project_id)
{
	return child_delete(db, &sql_schedule_delete_of, project_id);
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

	return db_row(db, a, &sql_schedule_by_id, &args, out);
}

const struct err *
schedule_lock(struct db *db, struct arena *a, int64_t id, struct schedule *out)
{
	const struct schedule args = { .id = id };
	const struct err *e;

	if ((e = db_row(db, a, &sql_schedule_lock, &args, out)) != NULL)
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

	e = db_exec(db, &sql_schedule_insert, s, &done);
	*id = e == NULL ? done.insert_id : 0;
	return e;
}

const struct err *
schedule_update(struct db *db, const struct schedule *s)
{
	return db_exec(db, &sql_schedule_update, s, NULL);
}

const struct err *
schedule_delete(struct db *db, int64_t id)
{
	return child_delete(db, &sql_schedule_delete_one, id);
}

const struct err *
schedule_wait(struct db *db, struct arena *a, struct maybe *out)
{
	const struct err *e;
	struct left row;

	e = db_row(db, a, &sql_schedule_left, NULL, &row);
	*out = e == NULL ? row.ms : (struct maybe){ .set = false };
	return e;
}

const struct err *
schedule_clock(struct db *db, struct arena *a, struct when *out)
{
	const struct err *e;
	struct schedule row;

	*out = (struct when){ 0 };
	if ((e = db_row(db, a, &sql_schedule_clock, NULL, &row)) == NULL)
		*out = row.now;
	return e;
}

const struct err *
schedule_later(struct db *db, struct arena *a, int64_t after, struct list *out)
{
	const struct schedule args = { .id = after };

	return db_rows(db, a, &sql_schedule_later, &args, out);
}

const struct err *
schedule_due(struct db *db, struct arena *a, int64_t after,
    struct schedule *out)
{
	const struct schedule args = { .id = after };

	return db_row(db, a, &sql_schedule_due, &args, out);
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

	e = db_exec(db, &sql_schedule_take, &args, &done);
	*taken = e == NULL && done.affected > 0;
	return e;
}

const struct err *
schedule_fired(struct db *db, int64_t id, int64_t deployment_id)
{
	const struct schedule args = { .id = id,
		.last_deployment_id = { deployment_id, true } };

	return db_exec(db, &sql_schedule_fired, &args, NULL);
}

const struct err *
schedule_rejected(struct db *db, int64_t id, const char *why)
{
	const struct schedule args = { .id = id, .last_error = why };

	return db_exec(db, &sql_schedule_rejected, &args, NULL);
}

const struct err *
schedule_unfired(struct db *db, const struct schedule *s, const char *why)
{
	struct schedule args = *s;

	args.last_error = why;
	return db_exec(db, &sql_schedule_unfired, &args, NULL);
}
