/* SPDX-License-Identifier: ISC */
#include "dispatch/start.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "core/log.h"
#include "core/str.h"
#include "dispatch/context.h"
#include "dispatch/control.h"
#include "dispatch/description.h"
#include "dispatch/patience.h"
#include "dispatch/project.h"
#include "dispatch/unstarted.h"
#include "dispatch/watch.h"
#include "dispatch/wipe.h"
#include "queue/notice.h"
#include "store/pipeline.h"

#define START "start of a job"
#define RETRY_MS 1000
#define FIRST_MS 25      /* then its files are looked at for the first time */
#define FIRST_MAX_MS 200 /* a reader waits at most that long */

static const char foreign[] =
    "Processes of the account that it needs are running, and this runner did"
    " not start them: another service on the host may use the same user ids"
    " (runner.uid_first).";

/* Why the monitor could not start a job. */
static const char *const obstacles[] = {
	[WIRE_WHY_NONE] = "The job could not be started.",
	[WIRE_WHY_BUSY] =
	    "Another deployment runs under the account that it needs.",
	[WIRE_WHY_ACCOUNT] =
	    "The runner has no account that this project may run under.",
	[WIRE_WHY_WORKSPACE] =
	    "The project's directory could not be created on the runner.",
	[WIRE_WHY_PROCESS] =
	    "The runner could not start a process for the job.",
	[WIRE_WHY_FOREIGN] = foreign,
};

/* Frees what was prepared for the job. */
static void
task_forget(struct task *t)
{
	buf_wipe(&t->description);
	clone_release(&t->clone);
}

static void
task_discard(struct task *t)
{
	task_forget(t);
	task_move(t, PHASE_CLOSED);
}

static void
deployment_end(struct dispatch *d, const struct task *t, enum reason reason,
    const char *detail)
{
	const struct queue_end how = { .id = t->run.id,
		.epoch = t->run.epoch,
		.reason = reason,
		.detail = detail };

	(void)unstarted_end(d, &how);
}

/* Whether it is on the queue again; else it has ended. */
static bool
give_back(struct dispatch *d, const struct task *t, enum reason reason,
    const char *detail, enum unstarted_where where)
{
	const struct queue_end how = { .id = t->run.id,
		.epoch = t->run.epoch,
		.reason = reason,
		.detail = detail };

	return unstarted_give_back(d, &how, where) == UNSTARTED_RETURNED;
}

static void
end_canceled(struct dispatch *d, int64_t id, int64_t epoch)
{
	const struct queue_end how = { .id = id,
		.epoch = epoch,
		.reason = REASON_CANCELED,
		.detail = state_unstarted(REASON_CANCELED) };

	(void)unstarted_end(d, &how);
}

/* Makes the directory in the spool, then asks the monitor. */
static const struct err *
ask_monitor(struct dispatch *d, struct task *t)
{
	struct wire w = { .magic = WIRE_MAGIC,
		.type = WIRE_START,
		.deployment = t->run.id,
		.epoch = t->run.epoch,
		.project = t->run.project,
		.limit = t->limit,
		.status = t->cache,
		.error = t->no_checkout ? WIRE_FILES_HIDDEN :
					  WIRE_FILES_SHOWN };
	int fds[WIRE_FD__REQUEST];
	const struct err *e;
	size_t i;

	if ((t->over_deleted && (e = wipe_around(d, t->run.project)) != NULL) ||
	    (e = description_end(&t->description, &t->clone)) != NULL ||
	    (e = run_make(&d->spool, &t->run, &t->description, fds)) != NULL)
		return e;
	watch_task(d->watch, &d->spool, t);
	(void)memcpy(w.dir, t->run.dir, strlen(t->run.dir));
	e = wire_send(CONTEXT_WIRE, &w, fds, WIRE_FD__REQUEST);
	for (i = 0; i < WIRE_FD__REQUEST; i++)
		(void)close(fds[i]);
	if (e != NULL)
		run_remove(&d->spool, &t->run);
	return e;
}

/* If a job has ended before the first look, its log and its end are stored in
 * one transaction. The more jobs run, the longer each takes. */
static int64_t
first_look(const struct tasks *tasks)
{
	const int64_t pause = FIRST_MS * (int64_t)tasks_live(tasks);

	return time_mono_ms() + (pause < FIRST_MAX_MS ? pause : FIRST_MAX_MS);
}

static bool
job_start(struct dispatch *d, struct task *t)
{
	const struct err *e = ask_monitor(d, t);
	const char *why;

	if (e != NULL) {
		why = arena_printf(d->a,
		    "The runner could not prepare a job%s%s.",
		    e->sys == 0 ? "" : ": ",
		    e->sys == 0 ? "" : strerror(e->sys));
		log_fault(e, START);
		task_discard(t);
		sick_report(&d->sick, why);
		(void)give_back(d, t, REASON_RUNNER, why, UNSTARTED_ANYWHERE);
		return false;
	}
	log_fault_over(START);
	task_forget(t);
	project_mark(&d->spool, t->run.project);
	t->progress.first_at = first_look(d->tasks);
	task_move(t, PHASE_STARTING);
	log_info("%s: starting, project %lld", t->run.name,
	    (long long)t->run.project);
	return true;
}

/* Whether the task still has its lease. */
static bool
lease_renew(struct dispatch *d, struct task *t)
{
	const int64_t now = time_mono_ms();
	const struct err *e;

	if (now < t->renew_at)
		return true;
	t->renew_at = now + RETRY_MS; /* if this fails */
	e = control_renew(d, t);
	if (e != NULL && e->code == ERR_PRECONDITION) {
		log_err(e, t->run.name);
		task_discard(t);
		return false;
	}
	(void)database_done(&d->database, e, t->run.name);
	return true;
}

bool
start_prepare(struct dispatch *d, struct task *t)
{
	if (!lease_renew(d, t) || !database_is_ready(&d->database))
		return true;
	if (t->is_canceled) {
		task_discard(t);
		end_canceled(d, t->run.id, t->run.epoch);
		return true;
	}
	if (!clone_is_done(d, &t->clone, t->run.name))
		return true;
	if (t->clone.rejection == NULL)
		return job_start(d, t);
	if (t->clone.is_away && time_mono_ms() < t->git_until) {
		(void)patience_wait(d, t, t->clone.retry_after,
		    t->clone.rejection);
		task_discard(t);
		return true;
	}
	log_warn("%s: not cloned: %s", t->run.name, t->clone.rejection);
	deployment_end(d, t, REASON_CHECKOUT, t->clone.rejection);
	task_discard(t);
	return true;
}

int64_t
start_due(const struct task *t, int64_t now)
{
	if (t->is_canceled || t->clone.answer == -1 || t->clone.finder == 0)
		return now;
	return t->clone.until < t->renew_at ? t->clone.until : t->renew_at;
}

/* If this fails, the end of the deployment records its start, too. */
static void
started_note(struct dispatch *d, const struct task *t)
{
	(void)database_done(&d->database,
	    notice_want(d->db, t->run.id, NOTICE_STARTED), t->run.name);
	d->events |= EVENT_STATUS;
}

bool
start_claimed(struct dispatch *d, const struct claim *c)
{
	const char *detail =
	    "The runner could not read what the job needs: see the runner's "
	    "log.";
	const struct err *e;
	struct run run;
	struct task *t;

	if (c->cancel) {
		end_canceled(d, c->id, c->epoch);
		return true;
	}
	run_init(&run, c->id, c->epoch, c->project_id, c->project_dir);
	t = task_open(d->tasks, &run);
	t->progress.connection = db_connections(d->db);
	t->limit = description_limit(&d->settings.runner, c);
	t->over_deleted = c->over_deleted;
	t->cache = (int32_t)c->cache_generation;
	t->no_checkout = str_eq(c->checkout, PIPELINE_CHECKOUT_NONE);
	t->is_announced = c->notices && t->no_checkout;
	fetch_begin(&t->fetch, clone_is_needed(c) ? c->repository : "");
	t->run.log_at = t->progress.log_at = c->log_size;
	patience_begin(d, t, c);
	control_leased(d, t);
	task_move(t, PHASE_PREPARING);
	if ((e = description_write(d, c, &t->description)) != NULL) {
		log_error("%s: %s", t->run.name, e->msg);
		if (e->detail[0] != '\0')
			detail = arena_strdup(d->a, e->detail);
		task_discard(t);
		(void)give_back(d, t, REASON_RUNNER, detail,
		    UNSTARTED_ELSEWHERE);
		return true;
	}
	clone_begin(d, &t->clone, c, t->run.name);
	return start_prepare(d, t);
}

void
start_abandon(struct dispatch *d, struct task *t)
{
	task_forget(t);
	if (database_is_ready(&d->database))
		(void)unstarted_release(d, t->run.id, t->run.epoch);
	else
		d->database.is_doubtful = true;
}

void
start_confirmed(struct dispatch *d, struct task *t, const struct wire *w)
{
	log_debug("%s: process %lld", t->run.name, (long long)w->pid);
	if (t->phase == PHASE_STARTING)
		task_move(t, PHASE_RUNNING);
	if (t->is_announced)
		started_note(d, t);
	if (t->is_canceled && run_cancel(&d->spool, &t->run) != NULL)
		log_warn("%s: the cancellation does not reach the job",
		    t->run.name);
}

/* Whether it fails for every deployment, and not because of what is in the place
 * of this one's directory. */
static bool
is_of_host(const struct wire *w)
{
	return w->status == WIRE_WHY_PROCESS ||
	    (w->status == WIRE_WHY_WORKSPACE && w->error != 0 &&
		w->error != ENOTDIR && w->error != ELOOP &&
		w->error != ENAMETOOLONG);
}

/* Without the full stop, and with the system's reason. */
static const char *
obstacle_text(struct arena *a, const char *why, int error)
{
	if (error == 0)
		return why;
	return arena_printf(a, "%.*s: %s.", (int)strlen(why) - 1, why,
	    strerror(error));
}

enum start_fate
start_rejected(struct dispatch *d, struct task *t, const struct wire *w,
    const char **why)
{
	const size_t n = sizeof(obstacles) / sizeof(obstacles[0]);
	const bool of_host = is_of_host(w);

	*why = obstacles[WIRE_WHY_NONE];
	if (w->status > 0 && (size_t)w->status < n)
		*why = obstacles[w->status];
	run_remove(&d->spool, &t->run);
	task_move(t, PHASE_CLOSED);
	if (w->status == WIRE_WHY_BUSY || w->status == WIRE_WHY_FOREIGN) {
		(void)unstarted_release(d, t->run.id, t->run.epoch);
		return START_BUSY;
	}
	*why = obstacle_text(d->a, *why, w->error);
	if (of_host)
		sick_report(&d->sick, *why);
	if (give_back(d, t, REASON_WORKSPACE, *why,
		of_host ? UNSTARTED_ANYWHERE : UNSTARTED_ELSEWHERE))
		return START_RETURNED;
	log_error("%s: not started: %s", t->run.name, *why);
	return START_ENDED;
}
