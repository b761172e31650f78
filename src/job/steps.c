/* SPDX-License-Identifier: ISC */
#include "job/steps.h"

#include <sys/stat.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "core/address.h"
#include "core/apart.h"
#include "core/file.h"
#include "core/str.h"
#include "core/tree.h"
#include "job/advice.h"
#include "job/cache.h"
#include "job/checkout.h"
#include "job/environment.h"
#include "job/job.h"
#include "job/log.h"
#include "job/report.h"
#include "job/run.h"
#include "job/script.h"
#include "job/workspace.h"

#define EMPTY "workspace" /* of jobs without a checkout */
/* Minimum time for a cleanup step without a time limit. */
#define CLEANUP_MS INT64_C(300000)

/* State of the deployment. */
struct progress {
	struct job *job;
	struct checkout checkout;
	const char *const *envp;
	enum reason reason; /* the outcome if it ended now */
	const char *detail;
	int64_t cancel_deadline; /* 0 = not canceled */
	bool failed;             /* only cleanup runs from now on */
	bool achieved;           /* a step that may not fail succeeded */
	bool curtailed;          /* canceled when only what may fail was left */
	bool noted;              /* the result says that it was achieved */
	size_t warnings;
	const char *warning; /* sentences; NULL = none */
	bool superseded;     /* no step runs */
	bool is_away; /* it is to be tried again: all steps stay as they are */
	bool began;   /* some step has */
};

/* When the step must have ended, in monotonic milliseconds, 0 = never.  Cleanup
 * has its own time, even if the pipeline's is used up. */
static int64_t
step_deadline(const struct progress *c, const struct job_step *step)
{
	const int64_t now = time_mono_ms();
	int64_t own = step->timeout > 0 ? now + step->timeout * 1000 : 0;
	int64_t all = c->job->deadline;

	if (c->cancel_deadline != 0)
		all = c->cancel_deadline;
	else if (c->failed && own != 0)
		all = own;
	else if (c->failed && all != 0 && all < now + CLEANUP_MS)
		all = now + CLEANUP_MS;
	if (own == 0 || all == 0)
		return own + all;
	return own < all ? own : all;
}

/* Limits cleanup to the grace period from that time. */
static void
progress_cancel(struct progress *c, int64_t since)
{
	if (c->failed && c->cancel_deadline != 0)
		return;
	if (c->cancel_deadline == 0)
		c->cancel_deadline = since + c->job->spec.cancel_grace * 1000;
	c->failed = true;
	c->reason = REASON_CANCELED;
	c->detail = reason_kinds[REASON_CANCELED].text;
}

/* Ends the deployment without running any step, not even cleanup. */
static void
progress_supersede(struct progress *c, const char *detail)
{
	c->superseded = true;
	c->reason = REASON_SUPERSEDED;
	c->detail = detail;
	job_log_say(&c->job->log, "==> superseded: %s", detail);
}

/* Records the first failure as that of the deployment. */
static void
progress_fail(struct progress *c, enum reason reason, const char *detail)
{
	if (c->failed)
		return;
	c->failed = true;
	c->reason = reason;
	c->detail = detail;
}

/* Returns a sentence if the pipeline's time is used up, else NULL. */
static const char *
overdue_text(const struct job *job)
{
	if (job->deadline == 0 || time_mono_ms() < job->deadline)
		return NULL;
	return arena_printf(job->a,
	    "The pipeline took longer than %lld seconds.",
	    (long long)job->spec.timeout);
}

/* Records the failure of a step: that of the deployment, or a warning. */
static void
progress_fail_step(struct progress *c, size_t i, enum reason reason,
    const char *detail)
{
	struct job *job = c->job;

	if (!job_step_at(job, i)->may_fail) {
		progress_fail(c, reason, detail);
		return;
	}
	c->warnings++;
	c->warning = c->warning == NULL ?
	    detail :
	    arena_printf(job->a, "%s %s", c->warning, detail);
	job_log_say(&job->log, "==> step %zu may fail: this is a warning",
	    i + 1);
}

/* Whether a step of that condition, this one or a later one, may not fail. */
static bool
progress_requires(const struct progress *c, size_t i, enum job_when when)
{
	const struct job_step *step = c->job->spec.steps.items;

	for (; i < c->job->spec.steps.n; i++)
		if (!step[i].may_fail && step[i].when == when)
			return true;
	return false;
}

/* Whether from this step on only steps are left that may fail, after others
 * have succeeded.  What was to be deployed is deployed then, whatever happens
 * to them. */
static bool
progress_is_achieved(const struct progress *c, size_t i)
{
	return !c->failed && c->achieved && job_step_at(c->job, i)->may_fail &&
	    !progress_requires(c, i, WHEN_SUCCESS);
}

/* Records that the deployment has succeeded, even if the job cannot report the
 * rest: it may be killed, or the machine stop, during housekeeping. */
static void
progress_note(struct progress *c, size_t i)
{
	if (c->noted || !progress_is_achieved(c, i) ||
	    progress_requires(c, i, WHEN_ALWAYS))
		return;
	c->noted = true;
	job_report(c->job,
	    &(struct job_event){ .kind = JOB_ACHIEVED,
		.position = (int64_t)i,
		.text = job_step_at(c->job, i)->name });
}

/* Ends the rest of the deployment; what was achieved remains a success. */
static void
progress_curtail(struct progress *c, int64_t since)
{
	if (c->curtailed)
		return;
	c->curtailed = true;
	c->cancel_deadline = since + c->job->spec.cancel_grace * 1000;
}

/* A cancel that arrived before this step. */
static void
progress_obey(struct progress *c, size_t i)
{
	struct job *job = c->job;

	if (job->cancel_at == 0 || c->curtailed)
		return;
	if (!progress_is_achieved(c, i)) {
		progress_cancel(c, job->cancel_at);
		return;
	}
	progress_curtail(c, job->cancel_at);
	job_log_say(&job->log, "==> canceled before step %zu", i + 1);
	progress_fail_step(c, i, REASON_CANCELED,
	    arena_printf(job->a,
		"It was canceled before step %zu (%s), when everything else "
		"had succeeded.",
		i + 1, job_step_at(job, i)->name));
}

static void
progress_update(struct progress *c, size_t i, const struct run_end *end)
{
	struct job *job = c->job;
	const struct job_step *step = job_step_at(job, i);
	const bool late = end->how == RUN_TIMED_OUT;
	const int64_t since = step->when == WHEN_SUCCESS ? time_mono_ms() :
							   job->cancel_at;
	const char *detail = late ? overdue_text(job) : NULL;

	if (job->cancel_at != 0 && progress_is_achieved(c, i))
		progress_curtail(c, since);
	else if (job->cancel_at != 0 && !(c->curtailed && run_succeeded(end))) {
		progress_cancel(c, since);
		return;
	}
	if (run_succeeded(end)) {
		c->achieved = c->achieved || !step->may_fail;
		return;
	}
	if (detail == NULL)
		detail = arena_printf(job->a, "Step %zu (%s) %s.", i + 1,
		    step->name, run_text(job->a, end));
	progress_fail_step(c, i, late ? REASON_TIMEOUT : REASON_STEP, detail);
}

/* The effect of a cancel on a step: a running cleanup continues for the grace
 * period. */
static unsigned
step_flags(const struct progress *c, const struct job_step *step)
{
	if (c->cancel_deadline != 0)
		return 0;
	return step->when == WHEN_SUCCESS ? RUN_CANCEL_ENDS_IT :
					    RUN_CANCEL_LIMITS_IT;
}

/* Records the end of a step that began at that offset of the log.  `end` is NULL
 * if it could not run. */
static void
step_end(const struct progress *c, size_t i, enum state state,
    const struct run_end *end, int64_t before)
{
	struct job_event event = {
		.kind = JOB_STEP_ENDED,
		.position = (int64_t)i,
		.status = state_kinds[state].name,
		.time = { time_now_ms() },
		.log = { c->job->log.size - before, true },
	};

	if (end != NULL && end->how == RUN_NOT_STARTED)
		event.exit_code = (struct maybe){ end->error == ENOENT ? 127 :
									 126,
			true };
	else if (end != NULL && WIFSIGNALED(end->status))
		event.signal = (struct maybe){ WTERMSIG(end->status), true };
	else if (end != NULL)
		event.exit_code = (struct maybe){ WEXITSTATUS(end->status),
			true };
	job_report(c->job, &event);
}

/* Opens the directory of a step; 0 is the workspace, -1 fails the step.
 * Earlier steps may have put anything in its place. */
static int
step_directory(struct progress *c, size_t i, int64_t before)
{
	const struct job_step *step = job_step_at(c->job, i);
	const struct err *e;
	int fd;

	if (step->directory == NULL)
		return 0;
	e = tree_find(JOB_FD(WIRE_FD_WORKSPACE), step->directory, &fd);
	if (e == NULL)
		return fd;
	job_log_say(&c->job->log,
	    "==> step %zu cannot run in the directory %s of the workspace: %s",
	    i + 1, step->directory, e->msg);
	step_end(c, i, STATE_FAILED, NULL, before);
	progress_fail_step(c, i, REASON_STEP,
	    arena_printf(c->job->a,
		"Step %zu (%s) cannot run in its directory: %s.", i + 1,
		step->name, e->msg));
	return -1;
}

/* The runner could not run a step.  That ends the deployment, unless the step
 * may fail: a full disk, for example, is no reason to fail what is live. */
static const struct err *
step_give_up(struct progress *c, size_t i, int64_t before, const struct err *e)
{
	struct job *job = c->job;

	if (!job_step_at(job, i)->may_fail)
		return e;
	job_log_say(&job->log, "==> step %zu could not run: %s", i + 1, e->msg);
	step_end(c, i, STATE_FAILED, NULL, before);
	progress_fail_step(c, i, REASON_RUNNER,
	    arena_printf(job->a, "Step %zu (%s) could not run: %s.", i + 1,
		job_step_at(job, i)->name, e->msg));
	return NULL;
}

static const struct err *
step_run(struct progress *c, size_t i)
{
	struct job *job = c->job;
	const struct job_step *step = job_step_at(job, i);
	const char *file = arena_printf(job->a, "%s/" JOB_SCRIPT,
	    job->place.home);
	const char *const direct[] = { file, NULL };
	const char *const bash[] = { "/bin/bash", "-eo", "pipefail", file,
		NULL };
	struct run run = {
		.argv = str_starts(step->script, "#!") ? direct : bash,
		.envp = c->envp,
		.deadline = step_deadline(c, step),
		.keep_fd = -1,
		.flags = step_flags(c, step),
	};
	const struct err *e;
	struct run_end end;
	int64_t before;

	job_log_say(&job->log, "==> step %zu: %s", i + 1, step->name);
	before = job->log.size;
	job_report(job,
	    &(struct job_event){ .kind = JOB_STEP_STARTED,
		.position = (int64_t)i,
		.time = { time_now_ms() },
		.log = { before, true } });
	if ((run.directory = step_directory(c, i, before)) == -1)
		return NULL;
	e = job_script(job, i);
	if (e == NULL)
		e = job_run(job, &run, &end);
	if (run.directory != 0)
		(void)close(run.directory);
	if (e != NULL)
		return step_give_up(c, i, before, e);
	step_end(c, i,
	    run_succeeded(&end)         ? STATE_SUCCESS :
		end.how == RUN_CANCELED ? STATE_CANCELED :
					  STATE_FAILED,
	    &end, before);
	if (!run_succeeded(&end))
		job_log_say(&job->log, "==> step %zu %s", i + 1,
		    run_text(job->a, &end));
	progress_update(c, i, &end);
	return NULL;
}

static bool
step_is_due(const struct progress *c, const struct job_step *step)
{
	if (c->superseded || (c->curtailed && step->when == WHEN_SUCCESS) ||
	    (c->cancel_deadline != 0 && time_mono_ms() >= c->cancel_deadline))
		return false;
	return step->when == WHEN_ALWAYS ||
	    (step->when == WHEN_FAILURE) == c->failed;
}

/* Whether the deployment is to be tried again, here or by another runner: then its
 * cleanup belongs to the last try. */
static bool
progress_waits(struct progress *c, enum checkout_how how, const char *detail)
{
	const bool room = how == CHECKOUT_NO_ROOM;
	struct job *job = c->job;

	job_control(job);
	if (job->cancel_at != 0 || (!room && job->spec.git_patience == 0))
		return false;
	c->is_away = true;
	c->reason = room ? REASON_WORKSPACE : REASON_CHECKOUT;
	c->detail = detail;
	job_log_say(&job->log, "==> %s: %s",
	    room ? "not started here" : "waiting for the Git server", detail);
	job_report(job,
	    &(struct job_event){ .kind = room ? JOB_NO_ROOM : JOB_GIT_AWAY,
		.text = detail });
	return true;
}

/* No commit was found to deploy. */
static void
progress_miss(struct progress *c, enum checkout_how how, const char *detail)
{
	struct job *job = c->job;
	const char *late = how == CHECKOUT_TIMED_OUT ? overdue_text(job) : NULL;
	const char *note;

	if (how == CHECKOUT_CANCELED) {
		progress_cancel(c, time_mono_ms());
		return;
	}
	if (how == CHECKOUT_SUPERSEDED) {
		progress_supersede(c, detail);
		return;
	}
	if (how == CHECKOUT_AWAY || how == CHECKOUT_NO_ROOM) {
		if (progress_waits(c, how, detail))
			return;
		how = CHECKOUT_FAILED;
	} else if (how == CHECKOUT_FAILED &&
	    (note = checkout_advice(job, detail)) != NULL)
		detail = arena_printf(job->a, "%s (%s)", detail, note);
	if (late != NULL)
		detail = late;
	job_log_say(&job->log, "==> checkout failed: %s", detail);
	progress_fail(c,
	    how == CHECKOUT_FAILED ? REASON_CHECKOUT : REASON_TIMEOUT, detail);
}

static const struct err *
progress_checkout(struct progress *c)
{
	struct job *job = c->job;
	const char *detail = "";
	enum checkout_how how;
	const struct err *e;

	job_log_say(&job->log, "==> checkout of %s", job->spec.repository);
	if ((e = job_checkout(job, &c->checkout, &how, &detail)) != NULL)
		return e;
	if (how == CHECKOUT_DONE) {
		job_report(job,
		    &(struct job_event){ .kind = JOB_CHECKED_OUT,
			.branch = c->checkout.elsewhere ? NULL :
							  c->checkout.branch,
			.hash = c->checkout.hash,
			.message = c->checkout.message });
		if (c->checkout.commits != NULL)
			job_report(job,
			    &(struct job_event){ .kind = JOB_COMMITS,
				.branch = c->checkout.branch,
				.text = c->checkout.commits });
	} else {
		progress_miss(c, how, detail);
	}
	if (c->checkout.state != NULL)
		job_report(job,
		    &(struct job_event){ .kind = JOB_OBJECTS,
			.text = c->checkout.state });
	c->envp = job_environment(job,
	    c->checkout.elsewhere ? "" : c->checkout.branch, c->checkout.hash);
	if (c->checkout.stayed.hash != NULL)
		job_report(job, &c->checkout.stayed);
	if (how == CHECKOUT_DONE || how == CHECKOUT_SUPERSEDED || c->is_away)
		return NULL;
	return workspace_hide(job);
}

/* A push that is no longer at the head of its branch deploys nothing, with or
 * without a checkout. */
static const struct err *
progress_head(struct progress *c)
{
	const char *detail = "";
	enum checkout_how how;
	const struct err *e;

	e = job_head(c->job, &how, &detail);
	if (e == NULL && how != CHECKOUT_DONE)
		progress_miss(c, how, detail);
	return e;
}

/* The steps get an empty directory in the private home. The files of the last
 * checkout belong to the same account, so they are hidden where mounts can be
 * private. */
static const struct err *
progress_no_checkout(struct progress *c)
{
	struct job *job = c->job;
	const struct err *e = NULL;
	int fd;

	job_log_say(&job->log, "==> no checkout%s",
	    job->place.hides && job->shared == NULL ?
		"" :
		"; the files of the last one cannot be hidden from the steps");
	if (mkdirat(JOB_FD(WIRE_FD_HOME), EMPTY, 0700) == -1)
		return err_errno("create an empty workspace");
	fd = openat(JOB_FD(WIRE_FD_HOME), EMPTY,
	    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd == -1 || dup3(fd, JOB_FD(WIRE_FD_WORKSPACE), O_CLOEXEC) == -1)
		e = err_errno("open an empty workspace");
	if (fd != -1)
		(void)close(fd);
	job->place.workspace = arena_printf(job->a, "%s/" EMPTY,
	    job->place.home);
	if (e == NULL && job->spec.head_only != 0)
		e = progress_head(c);
	job->spec.credential = NULL;
	c->envp = job_environment(job, job->spec.branch, job->spec.commit);
	return e;
}

static const struct err *
progress_run(struct progress *c)
{
	struct job *job = c->job;
	const struct err *e;
	size_t i;

	e = job->spec.checkout == CHECKOUT_NONE ? progress_no_checkout(c) :
						  progress_checkout(c);
	if (e != NULL || c->is_away)
		return e;
	for (i = 0; i < job->spec.steps.n; i++) {
		job_control(job);
		progress_obey(c, i);
		if (!step_is_due(c, job_step_at(job, i))) {
			job_report(job,
			    &(struct job_event){ .kind = JOB_STEP_SKIPPED,
				.position = (int64_t)i });
			continue;
		}
		c->began = true;
		progress_note(c, i);
		if ((e = step_run(c, i)) != NULL)
			return e;
	}
	return NULL;
}

/* The log is evidence, so its loss is a failure; a step may even have caused
 * it. */
static void
progress_log(struct progress *c)
{
	const struct job *job = c->job;
	const char *loss;

	if (job->log.lost == 0)
		return;
	loss = arena_printf(job->a,
	    "The log is incomplete: writing it failed (%s).",
	    strerror(job->log.lost));
	if (c->failed && c->detail != NULL)
		c->detail = arena_printf(job->a, "%s %s", c->detail, loss);
	progress_fail(c, REASON_LOG_LOST, loss);
}

const struct err *
job_steps(struct job *job)
{
	struct progress c = { .job = job };
	const struct err *e, *last;
	struct job_event workspace;

	if (job->spec.timeout > 0)
		job->deadline = time_mono_ms() + job->spec.timeout * 1000;
	if ((e = progress_run(&c)) != NULL) {
		job_log_say(&job->log, "==> the runner failed: %s", e->msg);
		progress_fail(&c, REASON_RUNNER,
		    arena_printf(job->a, "The runner failed: %s.", e->msg));
	}
	if (job->spec.checkout != CHECKOUT_NONE &&
	    job_workspace(job, &c.checkout.seen, &workspace) == NULL)
		job_report(job, &workspace);
	if (c.began)
		job_cache(job);
	job_log_close(&job->log);
	progress_log(&c);
	if (c.warnings != 0)
		job_report(job,
		    &(struct job_event){ .kind = JOB_WARNINGS,
			.size = (int64_t)c.warnings });
	last = job_report_end(job, c.reason,
	    c.reason == REASON_NONE ? c.warning : c.detail);
	return e != NULL ? e : last;
}

void
job_steps_clear(void)
{
	const int home = JOB_FD(WIRE_FD_HOME);

	if (unlinkat(home, JOB_SCRIPT, 0) == -1 && errno != ENOENT)
		return; /* a step has put something else there */
	(void)unlinkat(home, EMPTY, AT_REMOVEDIR);
	apart_tmp_remove(home);
}
