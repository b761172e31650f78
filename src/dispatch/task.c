/* SPDX-License-Identifier: ISC */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/log.h"
#include "core/str.h"
#include "dispatch/dispatch.h"
#include "store/joblog.h"
#include "store/project.h"

#define UPLOAD_MS 100 /* between uploads of one log */
#define PACK_HERE ((int64_t)JOBLOG_PACKED)
#define UPLOAD_MAX 16  /* chunks of one log in one turn */
#define TICK_MS 50     /* between looks at a job's files */
#define SWEEP_MS 15000 /* for the monitor to answer */
#define ASK_MS 300     /* between questions to it */
#define RETRY_MS 2000  /* after an error that is none of the database */
#define LATE_MS 5000   /* beyond the grace that a job has */

void
task_init(struct task *t)
{
	*t = (struct task){ .phase = PHASE_NEW };
	t->keeper = t->log = t->result = t->lock = t->answer = -1;
}

struct task *
task_open(struct dispatch *d)
{
	struct task *t = mem_alloc(1, sizeof(*t));

	task_init(t);
	if (d->n == d->cap) {
		d->cap = d->cap == 0 ? 16 : 2 * d->cap;
		d->tasks = mem_grow(d->tasks, d->cap, sizeof(*d->tasks));
	}
	d->tasks[d->n++] = t;
	return t;
}

bool
task_is_live(const struct task *t)
{
	return phase_kinds[t->phase].is_live;
}

struct task *
task_find(const struct dispatch *d, int64_t id, int64_t epoch)
{
	size_t i;

	for (i = 0; i < d->n; i++)
		if (d->tasks[i]->id == id && d->tasks[i]->epoch == epoch)
			return d->tasks[i];
	return NULL;
}

void
task_reap(struct dispatch *d)
{
	size_t i, left = 0;

	for (i = 0; i < d->n; i++) {
		if (d->tasks[i]->phase == PHASE_CLOSED) {
			spool_release(d->tasks[i]);
			mem_free(d->tasks[i]);
		} else {
			d->tasks[left++] = d->tasks[i];
		}
	}
	d->n = left;
}

void
task_move(struct task *t, enum phase phase)
{
	assert(phase_follows(t->phase, phase));
	t->phase = phase;
	t->since = time_mono_ms();
	t->retry_at = 0;
}

static void
ask_monitor(struct task *t)
{
	struct wire w = { .magic = WIRE_MAGIC,
		.type = WIRE_KILL,
		.deployment = t->id,
		.epoch = t->epoch,
		.project = t->project };
	const struct err *e;

	(void)memcpy(w.dir, t->dir, strlen(t->dir));
	if ((e = wire_send(DISPATCH_WIRE, &w, NULL, 0)) != NULL)
		log_err(e, t->name);
}

void
task_kill(struct dispatch *d, struct task *t, const char *why)
{
	(void)d;
	if ((t->flags & TASK_KILLED) != 0 || !task_is_live(t))
		return;
	log_warn("%s: is killed: %s", t->name, why);
	t->flags |= TASK_KILLED;
	ask_monitor(t);
}

void
task_cancel(struct dispatch *d, struct task *t)
{
	const struct settings_runner *s = &d->settings.runner;
	const struct err *e;

	if ((t->flags & TASK_CANCEL) != 0 || !task_is_live(t))
		return;
	log_info("%s: is to be canceled", t->name);
	t->flags |= TASK_CANCEL;
	if (t->phase == PHASE_PREPARING)
		return;
	t->kill_at = time_mono_ms() + (2 * s->grace + s->cancel_grace) * 1000 +
	    LATE_MS;
	if ((e = spool_cancel(d, t)) != NULL)
		log_err(e, t->name);
}

/* One that was adopted may live below another monitor, which ours cannot end:
 * that one is asked to end by itself, and over only when its lock is free. */
void
task_exited(struct dispatch *d, struct task *t)
{
	const struct err *e;

	if (!task_is_live(t))
		return;
	if (spool_lock_free(t)) {
		task_move(t, PHASE_ENDED);
		return;
	}
	log_warn("%s: its job has another monitor", t->name);
	if ((e = spool_cancel(d, t)) != NULL)
		log_err(e, t->name);
}

/* Another has it: whatever it still does counts for nothing. */
static void
fence(struct dispatch *d, struct task *t)
{
	if ((t->flags & TASK_FENCED) != 0)
		return;
	t->flags |= TASK_FENCED;
	task_kill(d, t, "its lease is lost");
}

/* What became of a call for the task; false if it stops here for now. */
static bool
said(struct dispatch *d, struct task *t, const struct err *e)
{
	if (e != NULL && e->code == ERR_PRECONDITION) {
		log_err(e, t->name);
		fence(d, t);
		return false;
	}
	if (!database_done(&d->database, e, t->name)) {
		t->retry_at = time_mono_ms() + RETRY_MS;
		return false;
	}
	return true;
}

static bool
renew(struct dispatch *d, struct task *t, int64_t now)
{
	int64_t lease = d->settings.runner.lease;

	if (now < t->renew_at)
		return true;
	if (!said(d, t, queue_renew(d->db, t->id, t->epoch, d->owner, lease)))
		return false;
	t->renew_at = now + lease * 1000 / 3;
	return true;
}

static bool
measure(struct dispatch *d, struct task *t)
{
	struct joblog_state state;

	if ((t->flags & TASK_MEASURED) != 0)
		return true;
	if (!said(d, t, joblog_state(d->db, d->a, t->id, &state)))
		return false;
	t->log_at = state.size;
	t->flags |= TASK_MEASURED;
	return true;
}

/* Whether all that there was is in the database. */
static bool
upload(struct dispatch *d, struct task *t)
{
	const char *file = arena_printf(d->a, "%s/log", t->name);
	char *data;
	ssize_t got;
	int n;

	if (!measure(d, t))
		return false;
	data = arena_alloc(d->a, JOBLOG_CHUNK, 1);
	for (n = 0; n < UPLOAD_MAX; n++) {
		got = pread(t->log, data, JOBLOG_CHUNK, (off_t)t->log_at);
		if (got == -1) {
			log_fault(err_errno("read"), file);
			return !task_is_live(t);
		}
		log_fault_over(file);
		if (got == 0)
			return true;
		if (!said(d, t,
			joblog_append(d->db, t->id, t->epoch, t->log_at, data,
			    (size_t)got)))
			return false;
		t->log_at += got;
	}
	return false;
}

/* The log before the steps: a step that has ended has its log there. */
static void
follow(struct dispatch *d, struct task *t, int64_t now)
{
	if (!database_is_ready(&d->database) || now < t->retry_at ||
	    !renew(d, t, now))
		return;
	if (t->log_at >= t->log_end)
		result_look(t);
	if (now >= t->upload_at || t->log_at < t->log_end) {
		if (upload(d, t))
			t->upload_at = now + UPLOAD_MS;
		if (!database_is_ready(&d->database))
			return;
	}
	if (t->log_at >= t->log_end &&
	    (t->flags & (TASK_BROKEN | TASK_FENCED)) == 0)
		(void)said(d, t, result_follow(d, t));
}

/* How it ended, where the job itself did not say. */
static void
conclude(struct task *t, struct outcome *o)
{
	if (o->ended)
		return;
	o->time = 0;
	if ((t->flags & TASK_CANCEL) != 0) {
		o->reason = REASON_CANCELED;
		o->detail = "It did not end in time and was killed.";
		return;
	}
	o->reason = REASON_LOST;
	o->detail = "The job was killed before it could say how it ended.";
}

/* Of a checkout that did not get to its end only the commit may be known that
 * the workspace was at before; and steps may have taken it away since. */
static const struct err *
workspace_told(struct dispatch *d, const struct task *t,
    const struct workspace_seen *seen)
{
	struct workspace_status status = {
		.project_id = t->project,
		.status = seen->status,
		.dirty = seen->dirty,
		.size_bytes = { seen->size, true },
		.runner = d->name,
		.checked_at = { time_now_ms() },
	};
	struct workspace_status before = { .branch = NULL };
	const struct err *e;

	if (seen->status == NULL)
		return NULL;
	if (seen->hash != NULL &&
	    (str_eq(seen->status, "ready") || str_eq(seen->status, "error"))) {
		status.branch = seen->branch;
		status.commit_hash = seen->hash;
		status.commit_message = seen->message;
		e = seen->branch != NULL ?
		    NULL :
		    workspace_by_project(d->db, d->a, t->project, &before);
		if (e != NULL && e->code != ERR_NOTFOUND)
			return e;
		if (str_eq(before.commit_hash, seen->hash))
			status.branch = before.branch;
	}
	return workspace_save(d->db, &status);
}

/* Back on the queue, as if nobody had ever taken it. */
static void
put_back(struct dispatch *d, struct task *t)
{
	if (!said(d, t, queue_release(d->db, t->id, t->epoch)))
		return;
	teller_wake(d);
	log_info("%s: never ran; it is put back", t->name);
	d->claim = true;
	task_move(t, PHASE_DROPPED);
}

/* Tells the queue how it ended. */
static void
settle(struct dispatch *d, struct task *t)
{
	struct outcome o;
	struct queue_end end = { .id = t->id, .epoch = t->epoch };
	const struct reason_kind *why;
	const struct err *e;

	if (spool_unbegun(t)) {
		task_move(t, PHASE_UNBEGUN);
		return;
	}
	if (!upload(d, t))
		return;
	t->result_end = INT64_MAX;
	if ((t->flags & TASK_BROKEN) == 0 && !said(d, t, result_follow(d, t)))
		return;
	if ((e = result_read(t, d->a, &o)) != NULL) {
		log_err(e, t->name);
		o.ended = false;
	}
	fetch_failed(d, t);
	conclude(t, &o);
	why = &reason_kinds[o.reason];
	end.reason = o.reason;
	end.detail = o.detail;
	end.log_size = t->log_at;
	end.finished_at.ms = o.time;
	if (o.objects != NULL)
		spool_objects_save(d, t->project, o.objects);
	/* before the end: who sees the end sees the workspace as it is */
	if (!said(d, t, workspace_told(d, t, &o.workspace)) ||
	    !said(d, t, queue_end(d->db, &end)))
		return;
	teller_wake(d);
	log_info("%s: %s%s%s", t->name, state_kinds[why->ends].name,
	    why->name == NULL ? "" : ", ", why->name == NULL ? "" : why->name);
	d->claim = true;
	task_move(t, PHASE_SETTLED);
}

/* Packing a large log takes long: by a process of its own, with a connection
 * of its own. */
static pid_t
pack_apart(struct dispatch *d, const struct task *t)
{
	const struct err *e;
	struct db *db;
	pid_t pid = child_fork(-1);

	if (pid != 0)
		return pid;
	if ((e = db_open(&d->settings, DB_RUNNER, &db)) == NULL)
		e = joblog_pack(db, d->a, t->id);
	if (e != NULL)
		log_err(e, t->name);
	_exit(e == NULL ? 0 : 1);
}

/* The queue has it all; packing only saves room. */
static void
tidy(struct dispatch *d, struct task *t)
{
	if (t->phase == PHASE_SETTLED && t->log_at > PACK_HERE) {
		if (d->packer > 0)
			return;
		d->packer = pack_apart(d, t);
	} else if (t->phase == PHASE_SETTLED) {
		(void)database_done(&d->database,
		    joblog_pack(d->db, d->a, t->id), t->name);
	}
	spool_remove(d, t);
	task_move(t, PHASE_CLOSED);
}

static void
watch(struct dispatch *d, struct task *t, int64_t now)
{
	if (t->kill_at != 0 && now >= t->kill_at)
		task_kill(d, t, "it did not end in time");
	if ((t->flags & TASK_ADOPTED) != 0 && t->phase == PHASE_RUNNING &&
	    spool_lock_free(t))
		task_move(t, PHASE_SWEEPING);
	if (t->phase == PHASE_SWEEPING && now >= t->ask_at) {
		ask_monitor(t); /* one that is busy with it says nothing */
		t->ask_at = now + ASK_MS;
	}
	if (t->phase == PHASE_SWEEPING && now - t->since >= SWEEP_MS) {
		log_warn("%s: the monitor does not say what is left", t->name);
		task_move(t, PHASE_ENDED);
	}
}

static bool
is_due(const struct dispatch *d, const struct task *t, int64_t now)
{
	return now >= t->retry_at && database_is_ready(&d->database);
}

void
task_work(struct dispatch *d, struct task *t)
{
	int64_t now = time_mono_ms();

	if (t->phase == PHASE_PREPARING) {
		claim_asking(d, t);
		return;
	}
	if (task_is_live(t))
		watch(d, t, now);
	if (task_is_live(t) && (t->flags & TASK_FENCED) == 0)
		follow(d, t, now);
	if ((t->phase == PHASE_ENDED || t->phase == PHASE_UNBEGUN) &&
	    (t->flags & TASK_FENCED) != 0)
		task_move(t, PHASE_DROPPED);
	if (is_due(d, t, now) && t->phase == PHASE_ENDED && renew(d, t, now))
		settle(d, t);
	if (is_due(d, t, now) && t->phase == PHASE_UNBEGUN)
		put_back(d, t);
	if (t->phase == PHASE_SETTLED || t->phase == PHASE_DROPPED)
		tidy(d, t);
}

int64_t
task_due(const struct task *t, int64_t now)
{
	if (t->phase == PHASE_ENDED || t->phase == PHASE_UNBEGUN)
		return t->retry_at > now ? t->retry_at : now;
	return now + TICK_MS;
}
