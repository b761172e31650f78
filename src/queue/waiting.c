/* SPDX-License-Identifier: ISC */
#include "queue/waiting.h"

#include "core/str.h"
#include "queue/stores.h"
#include "store/lock.h"
#include "store/runner.h"

#define SOON 3 /* seconds in which a runner normally claims a deployment */

static const char *const reasons[] = { "approval", "lock", "project_busy",
	WAITING_SLOTS, WAITING_GIT, "no_runner", NULL };

#define W(m, ...) FIELD(struct waiting, m, FIELD_OUT | __VA_ARGS__)
static const struct field waiting_fields[] = {
	W(reason, 0, .values = reasons, .named = "WaitingReason",
	    .doc = "Code of the reason."),
	W(detail, 0, .doc = "The reason as text."),
	FIELD_END,
};
const struct shape waiting_shape = {
	.name = "Waiting",
	.fields = waiting_fields,
	.size = sizeof(struct waiting),
	.doc = "Why a pending deployment does not run yet.",
};

/* The ids of rollbacks and of others below which a deployment comes first. */
struct place {
	int64_t project_id;
	int64_t rollbacks;
	int64_t others;
};
struct crowd {
	int64_t age; /* seconds */
	int64_t running;
	int64_t runners;    /* online, of those that may run it */
	int64_t well;       /* of those, how many are not sick */
	const char *sick;   /* why one of the others is sick */
	const char *runner; /* to which the environment is bound */
	const char *environment;
};
struct found {
	int64_t n;
};

#include "queue/waiting.sql.h"

const struct store waiting_store = {
	.stmts = waiting_stmts,
};

static const char *
crowd_detail(struct arena *a, const struct crowd *c)
{
	if (c->runners == 0 && c->runner != NULL)
		return arena_printf(a,
		    "The environment %s is bound to the runner %s, and no "
		    "runner with this name or label is online.",
		    c->environment, c->runner);
	if (c->runners == 0)
		return "No runner is online. Start slipway-runner.";
	if (c->well == 0)
		return arena_printf(a, "The runner cannot start it. %s",
		    c->sick);
	if (c->running == 0)
		return "No runner has claimed it. Check that slipway-runner is "
		       "running.";
	return arena_printf(a, "No runner %s%shas a free slot.",
	    c->runner != NULL ? c->runner : "", c->runner != NULL ? " " : "");
}

/* The project is idle, and no runner has reported an obstacle. */
static const struct err *
crowd_find(struct db *db, struct arena *a, const struct deployment *d,
    struct waiting *out, bool *found)
{
	const struct err *e;
	struct crowd c;

	*found = false;
	if ((e = db_row(db, a, &sql_waiting_crowd, d, &c)) != NULL ||
	    c.age < SOON)
		return e;
	*found = true;
	out->reason = c.well > 0 && c.running > 0 ? WAITING_SLOTS : "no_runner";
	out->detail = crowd_detail(a, &c);
	return NULL;
}

static bool
awaits_approval(const struct deployment *d)
{
	return str_eq(d->approval, APPROVAL_REQUIRED);
}

const struct err *
waiting_look(struct db *db, struct arena *a, const struct deployment *d,
    struct waiting_queue *out)
{
	const struct deployment args = { .project_id = d->project_id,
		.turn = deployment_turn(d) };

	return db_row(db, a, &sql_waiting_queue, &args, out);
}

void
waiting_begin(struct arena *a, const struct waiting_queue *before,
    struct deployment *d)
{
	struct waiting *w = arena_alloc(a, 1, sizeof(*w));
	const bool busy = before->running != 0;

	d->waiting_for = (struct list){ .items = w };
	d->queue_position = (struct maybe){ .set = false };
	if (awaits_approval(d)) {
		*w = (struct waiting){ .reason = "approval",
			.detail = d->commit_read || d->commit_hash == NULL ?
			    "An approver of its environment has to approve or "
			    "deny it." :
			    "An approver of its environment has to approve or "
			    "deny it. The Git server has not confirmed that "
			    "the branch or tag has this commit." };
		d->waiting_for.n = 1;
		return;
	}
	d->queue_position = (struct maybe){ .n = before->n, .set = true };
	if (!busy && before->first == 0)
		return;
	w->reason = "project_busy";
	w->detail = arena_printf(a, "Deployment %lld of this project %s.",
	    (long long)(busy ? before->running : before->first),
	    busy ? "is running" : "comes first");
	d->waiting_for.n = 1;
}

/* Reads which deployments come before one that exists. */
static const struct err *
ahead_find(struct db *db, struct arena *a, const struct deployment *d,
    struct waiting_queue *out)
{
	const bool back = str_eq(d->trigger, DEPLOYMENT_ROLLBACK);
	const struct place place = { .project_id = d->project_id,
		.rollbacks = back ? d->id : INT64_MAX,
		.others = back ? 0 : d->id };

	*out = (struct waiting_queue){ .n = 0 };
	return awaits_approval(d) ?
	    NULL :
	    db_row(db, a, &sql_waiting_ahead, &place, out);
}

/* The deployment waits for a lock. */
static const struct err *
lock_find(struct db *db, struct arena *a, struct deployment *d)
{
	struct waiting *w = d->waiting_for.items;
	struct deploy_lock lock;
	const struct err *e;

	if (str_eq(d->trigger, DEPLOYMENT_ROLLBACK))
		return NULL;
	e = lock_over(db, a, d->project_id, d->environment_id.n, &lock);
	if (e != NULL)
		return e->code == ERR_NOTFOUND ? NULL : e;
	w->reason = "lock";
	w->detail = arena_printf(a, "The %s is locked by %s: %s",
	    lock_scope(&lock), lock.by, lock.reason);
	d->waiting_for.n = 1;
	return NULL;
}

const struct err *
waiting_find(struct db *db, struct arena *a, struct deployment *d)
{
	struct waiting_queue before;
	const struct err *e;
	bool found = true;

	if ((e = ahead_find(db, a, d, &before)) != NULL)
		return e;
	waiting_begin(a, &before, d);
	if (awaits_approval(d) || (e = lock_find(db, a, d)) != NULL ||
	    d->waiting_for.n > 0)
		return e;
	e = db_row(db, a, &sql_waiting_seen, d, d->waiting_for.items);
	if (e != NULL && e->code == ERR_NOTFOUND)
		e = crowd_find(db, a, d, d->waiting_for.items, &found);
	if (e == NULL && found)
		d->waiting_for.n = 1;
	return e;
}

const struct err *
waiting_record(struct db *db, const struct waiting_note *note)
{
	return db_exec(db, &sql_waiting_record, note, NULL);
}

const struct err *
waiting_tidy(struct db *db, struct arena *a)
{
	const struct err *e;
	struct found row;

	e = db_row(db, a, &sql_waiting_old, NULL, &row);
	return e != NULL || row.n == 0 ?
	    e :
	    db_exec(db, &sql_waiting_tidy, NULL, NULL);
}
