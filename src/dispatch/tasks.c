/* SPDX-License-Identifier: ISC */
/*
 * Follows jobs until nothing of them is left.
 *
 * A job needs neither dispatcher nor database: it runs on without them, and a
 * dispatcher that starts later adopts it.
 */
#include "core/log.h"
#include "core/str.h"
#include "dispatch/context.h"
#include "dispatch/control.h"
#include "dispatch/part.h"

#define ASK_MS 300     /* between requests to a monitor that is busy */
#define SWEEP_MS 15000 /* for the monitor to answer */

/* The job of an adopted task may belong to another monitor, which reports
 * nothing here: its lock shows when it ends. */
static void
task_watch(struct task *t, int64_t now)
{
	if (t->kill_at != 0 && now >= t->kill_at)
		control_kill(t, "it did not end in time");
	if (t->is_adopted && t->phase == PHASE_RUNNING &&
	    run_has_ended(&t->run))
		task_move(t, PHASE_SWEEPING);
	if (t->phase != PHASE_SWEEPING)
		return;
	if (now >= t->sweep_at) {
		control_sweep(t);
		t->sweep_at = now + ASK_MS;
	}
	if (now - t->since >= SWEEP_MS) {
		log_warn("%s: the monitor has not reported that no process is "
			 "left",
		    t->run.name);
		task_move(t, PHASE_ENDED);
	}
}

static bool
is_started(const struct task *t)
{
	return task_is_live(t) && t->phase != PHASE_PREPARING;
}

/* Whether nothing remains to be done for the task. */
static bool
is_void(const struct task *t)
{
	return t->phase == PHASE_DROPPED ||
	    (t->is_fenced &&
		(t->phase == PHASE_ENDED || t->phase == PHASE_UNBEGUN));
}

static void
tasks_work(struct dispatch *d, void *state, int64_t now)
{
	struct task *t;
	size_t i;

	(void)state;
	for (i = 0; i < d->tasks->n; i++) {
		t = d->tasks->items[i];
		if (is_started(t))
			task_watch(t, now);
		if (!is_void(t))
			continue;
		if (t->phase != PHASE_DROPPED)
			task_move(t, PHASE_DROPPED);
		run_remove(&d->spool, &t->run);
		task_move(t, PHASE_CLOSED);
	}
	tasks_reap(d->tasks);
}

static int64_t
task_due(const struct task *t, int64_t now)
{
	if (is_void(t))
		return now;
	if (!is_started(t))
		return INT64_MAX;
	if (t->phase == PHASE_SWEEPING)
		return t->sweep_at;
	if (t->is_adopted)
		return now + task_tick(t);
	return t->kill_at != 0 && !t->is_killed ? t->kill_at : INT64_MAX;
}

static int64_t
tasks_next(const struct dispatch *d, const void *state, int64_t now)
{
	int64_t due = INT64_MAX, at;
	size_t i;

	(void)state;
	for (i = 0; i < d->tasks->n; i++)
		if ((at = task_due(d->tasks->items[i], now)) < due)
			due = at;
	return due;
}

/* This monitor does not have the job. An adopted job may belong to another
 * monitor: then it gets a request to end, and has ended when its lock is free. */
static void
task_exited(const struct dispatch *d, struct task *t)
{
	const struct err *e;

	if (run_has_ended(&t->run)) {
		task_move(t, PHASE_ENDED);
		return;
	}
	log_warn("%s: its job belongs to another monitor", t->run.name);
	if ((e = run_cancel(&d->spool, &t->run)) != NULL)
		log_err(e, t->run.name);
}

static void
tasks_message(struct dispatch *d, void *state, const struct wire *w)
{
	struct task *t;

	(void)state;
	if (w->type != WIRE_EXITED)
		return;
	t = task_find(d->tasks, w->deployment, w->epoch);
	if (t != NULL && is_started(t))
		task_exited(d, t);
}

const struct part tasks_part = {
	.flags = PART_OFFLINE,
	.work = tasks_work,
	.next = tasks_next,
	.message = tasks_message,
};
