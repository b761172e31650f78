/* SPDX-License-Identifier: ISC */
/*
 * Copies from the spool to the database: the logs of jobs, the results of their
 * steps, and how they ended.
 */
#include <sys/stat.h>

#include <unistd.h>

#include "core/log.h"
#include "core/str.h"
#include "dispatch/child.h"
#include "dispatch/context.h"
#include "dispatch/control.h"
#include "dispatch/outcome.h"
#include "dispatch/part.h"
#include "dispatch/patience.h"
#include "dispatch/project.h"
#include "dispatch/result.h"
#include "dispatch/unstarted.h"
#include "dispatch/waiting.h"
#include "queue/joblog.h"
#include "queue/loghole.h"

#define UPLOAD_MS 100 /* between uploads of one log */
#define UPLOAD_MAX 16 /* chunks of one log in a turn */
#define RETRY_MS 2000 /* after an error that is not an outage */
#define PACK_HERE ((int64_t)JOBLOG_PACKED)
/* A log that is not larger and has few chunks stays as it is. */
#define PLAIN_MAX 2048
#define PLAIN_CHUNKS 4
#define SETTLED_MAX 16 /* in one transaction */
#define RESULT_SMALL 65536

struct uploads {
	pid_t packer; /* of a large log, 0 = none */
};

/* Whether a call for the task succeeded; if not, the rest has to wait. */
static bool
is_done(struct dispatch *d, struct task *t, const struct err *e)
{
	if (e != NULL && e->code == ERR_PRECONDITION) {
		log_err(e, t->run.name);
		control_fence(t);
		return false;
	}
	if (database_done(&d->database, e, t->run.name))
		return true;
	t->retry_at = time_mono_ms() + RETRY_MS;
	return false;
}

static bool
lease_renew(struct dispatch *d, struct task *t, int64_t now)
{
	return now < t->renew_at || is_done(d, t, control_renew(d, t));
}

static bool
is_measured(const struct dispatch *d, const struct task *t)
{
	const int64_t connection = t->progress.connection;

	return connection != 0 && connection == db_connections(d->db);
}

/* Asks what is stored, again after each new connection: it may be to a server
 * that took over without the last writes.  All records of the result are then
 * written again; those that are stored change nothing. */
static bool
log_measure(struct dispatch *d, struct task *t)
{
	struct progress *p = &t->progress;
	struct joblog_state now;
	int64_t size;

	if (is_measured(d, t))
		return true;
	if (!is_done(d, t, joblog_stored(d->db, d->a, t->run.id, &size)) ||
	    !is_done(d, t, joblog_state(d->db, d->a, t->run.id, &now)))
		return false;
	if (size < p->log_at)
		log_warn("%s: the database has only %lld of %lld bytes of the "
			 "log; the rest is stored again",
		    t->run.name, (long long)size, (long long)p->log_at);
	/* the spool does not have what tries before this one wrote */
	p->is_torn = size < t->run.log_at;
	p->log_at = p->is_torn ? t->run.log_at : size;
	p->stored_end = now.size;
	p->result_at = 0;
	p->connection = db_connections(d->db);
	t->is_changed = true;
	return true;
}

/* Stores the next part of the log; whether that is all that was in the file. */
static const struct err *
log_store(struct dispatch *d, struct task *t, bool *all)
{
	const char *file = arena_printf(d->a, "%s/log", t->run.name);
	char *data = arena_alloc(d->a, JOBLOG_CHUNK, 1);
	struct progress *p = &t->progress;
	const struct err *e;
	ssize_t got;
	int n;

	*all = false;
	for (n = 0; n < UPLOAD_MAX; n++) {
		got = pread(t->run.log, data, JOBLOG_CHUNK, (off_t)p->log_at);
		if (got == -1) {
			log_fault(err_errno("read"), file);
			p->upload_at = time_mono_ms() + UPLOAD_MS;
			*all = !task_is_live(t);
			return NULL;
		}
		log_fault_over(file);
		if (got == 0) {
			*all = true;
			return NULL;
		}
		if ((e = joblog_append(d->db, t->run.id, t->run.epoch,
			 p->log_at, data, (size_t)got)) != NULL)
			return e;
		p->log_at += got;
		p->chunks++;
	}
	return NULL;
}

/* Whether the database has all that was in the file. */
static bool
log_upload(struct dispatch *d, struct task *t)
{
	bool all;

	return log_measure(d, t) && is_done(d, t, log_store(d, t, &all)) && all;
}

/* The log goes first: when a reader sees that a step has ended, its log is
 * complete. */
static void
task_follow(struct dispatch *d, struct task *t, int64_t now)
{
	struct progress *p = &t->progress;

	if (!lease_renew(d, t, now) || now < p->first_at ||
	    (!t->is_changed && now < p->look_at))
		return;
	p->look_at = now + task_tick(t);
	t->is_changed = true; /* until all of it is uploaded */
	if (p->log_at >= p->log_end)
		result_check(t);
	if (now >= p->upload_at || p->log_at < p->log_end) {
		if (log_upload(d, t)) {
			p->upload_at = now + UPLOAD_MS;
			t->is_changed = false;
		}
		if (!database_is_ready(&d->database))
			return;
	}
	if (p->log_at >= p->log_end && p->result_at < p->result_end &&
	    !p->is_broken && !t->is_fenced)
		(void)is_done(d, t, result_follow(d, t));
}

/* Keeps what the next job of the project needs. */
static void
put_down(struct dispatch *d, struct task *t, const struct outcome *o)
{
	if (fetch_failed(d->hosts, &t->fetch, t->run.name))
		d->events |= EVENT_QUEUE;
	if (o->objects != NULL && t->run.project != 0)
		project_objects_save(&d->spool, t->run.project, o->objects);
	d->events |= EVENT_QUEUE | EVENT_STATUS;
	task_move(t, PHASE_DROPPED);
}

/* Returns it to the queue, to be tried again when the Git server may respond.
 * Its log has the output of this try. */
static void
put_back_later(struct dispatch *d, struct task *t)
{
	struct outcome o;

	if (!lease_renew(d, t, time_mono_ms()) || !log_upload(d, t))
		return;
	outcome_read(d->a, t, &o);
	if (!patience_wait(d, t, 0,
		o.git_away != NULL ? o.git_away : "it is unknown")) {
		t->retry_at = time_mono_ms() + RETRY_MS;
		return;
	}
	put_down(d, t, &o);
}

/* Returns it to the queue because of this runner's disk, or ends it if that was
 * done too often. */
static void
put_back_sick(struct dispatch *d, struct task *t)
{
	struct queue_end end = { .id = t->run.id,
		.epoch = t->run.epoch,
		.reason = REASON_WORKSPACE };
	struct outcome o;

	if (!lease_renew(d, t, time_mono_ms()) || !log_upload(d, t))
		return;
	outcome_read(d->a, t, &o);
	end.detail = o.no_room != NULL ? o.no_room : "The reason is unknown.";
	end.log_size = t->progress.log_at;
	sick_suspect(&d->sick, t->run.project, end.detail);
	if (unstarted_give_back(d, &end, UNSTARTED_ANYWHERE) ==
	    UNSTARTED_RETURNED) {
		(void)avoid_give_back(&d->avoid, t->run.id);
		waiting_note(d, t->run.id, end.detail);
	}
	put_down(d, t, &o);
}

/* Returns it to the queue, as if it had never been claimed. */
static void
put_back(struct dispatch *d, struct task *t)
{
	if (t->is_away) {
		put_back_later(d, t);
		return;
	}
	if (t->is_roomless) {
		put_back_sick(d, t);
		return;
	}
	if (!lease_renew(d, t, time_mono_ms()) ||
	    !is_done(d, t, queue_release(d->db, t->run.id, t->run.epoch)))
		return;
	log_info("%s: never ran; returned to the queue", t->run.name);
	d->events |= EVENT_QUEUE | EVENT_STATUS;
	task_move(t, PHASE_DROPPED);
}

/* The rows that are written together with the end of a task. */
struct settlement {
	struct dispatch *d;
	struct task *t;
	struct progress before;
	struct outcome outcome;
	struct queue_end end;
};

/* How much of the log the database does not have, INT64_MAX = unknown. */
static int64_t
log_rest(const struct task *t)
{
	struct stat st;

	return fstat(t->run.log, &st) == 0 ? st.st_size - t->progress.log_at :
					     INT64_MAX;
}

/* Says in the result how much of the log was lost: the database does not have
 * it, and it cannot be read in the spool any more. */
static const struct err *
log_close(struct settlement *s)
{
	const struct progress *p = &s->t->progress;
	const struct outcome *o = &s->outcome;
	const struct err *e;
	int64_t missing, rest = log_rest(s->t);

	s->end.log_size = p->log_at;
	s->end.detail = o->detail;
	s->end.warnings = o->warnings;
	if (rest > 0 && rest < INT64_MAX)
		s->end.log_size += rest;
	if (p->stored_end > s->end.log_size)
		s->end.log_size = p->stored_end;
	if (s->end.log_size == p->log_at && !p->is_torn)
		return NULL;
	if ((e = loghole_missing(s->d->db, s->d->a, s->t->run.id,
		 s->end.log_size, &missing)) != NULL ||
	    missing == 0)
		return e;
	log_warn("%s: %lld bytes of the log are lost", s->t->run.name,
	    (long long)missing);
	s->end.detail = arena_printf(s->d->a,
	    "%s%s%lld bytes of the log are missing.",
	    o->detail == NULL ? "" : o->detail, o->detail == NULL ? "" : " ",
	    (long long)missing);
	s->end.warnings = o->warnings + 1;
	return NULL;
}

/* A reader who sees the end sees the log, the steps and the workspace as they
 * are then. */
static const struct err *
settle_body(struct db *db, void *context)
{
	struct settlement *s = context;
	struct progress *p = &s->t->progress;
	const struct err *e;
	bool all;

	*p = s->before;
	if (p->connection != db_connections(db))
		return err_new(ERR_UNAVAILABLE,
		    "the connection to the database is a new one");
	p->result_end = INT64_MAX;
	if ((e = log_store(s->d, s->t, &all)) != NULL ||
	    (!p->is_broken && (e = result_follow(s->d, s->t)) != NULL))
		return e;
	if ((e = log_close(s)) != NULL)
		return e;
	return outcome_workspace(s->d, s->t, &s->outcome.workspace);
}

static void
task_settled(struct dispatch *d, struct task *t, const struct outcome *o)
{
	const struct reason_kind *why = &reason_kinds[o->reason];

	if (fetch_failed(d->hosts, &t->fetch, t->run.name))
		d->events |= EVENT_QUEUE;
	if (o->objects != NULL && t->run.project != 0)
		project_objects_save(&d->spool, t->run.project, o->objects);
	log_info("%s: %s%s%s", t->run.name, state_kinds[why->ends].name,
	    why->name == NULL ? "" : ", ", why->name == NULL ? "" : why->name);
	sick_over(&d->sick);
	d->events |= EVENT_QUEUE | EVENT_STATUS;
	task_move(t, PHASE_SETTLED);
}

/* Whether the rest of the log fits into one chunk. */
static bool
is_nearly_uploaded(const struct task *t)
{
	return log_rest(t) <= (int64_t)JOBLOG_CHUNK;
}

/* Reads the outcome; whether the end can be written. */
static bool
settlement_make(struct dispatch *d, struct task *t, struct settlement *out)
{
	if (!log_measure(d, t) || (!is_nearly_uploaded(t) && !log_upload(d, t)))
		return false;
	*out = (struct settlement){ .d = d, .t = t, .before = t->progress };
	outcome_read(d->a, t, &out->outcome);
	if (out->outcome.git_away != NULL || out->outcome.no_room != NULL) {
		t->is_away = out->outcome.git_away != NULL;
		t->is_roomless = !t->is_away;
		task_move(t, PHASE_UNBEGUN);
		return false;
	}
	out->end = (struct queue_end){ .id = t->run.id,
		.epoch = t->run.epoch,
		.reason = out->outcome.reason,
		.detail = out->outcome.detail,
		.warnings = out->outcome.warnings,
		.finished_at = { out->outcome.time },
		.before = settle_body,
		.context = out,
		.holds = log_rest(t) > 0 };
	return true;
}

static void
settle_one(struct settlement *s)
{
	if (is_done(s->d, s->t, queue_end(s->d->db, &s->end)))
		task_settled(s->d, s->t, &s->outcome);
	else
		s->t->progress = s->before;
}

/* Tasks that end in one transaction. */
struct batch {
	struct settlement items[SETTLED_MAX];
	size_t n;
};

/* Ends them together; if that fails because of one of them, each by itself. */
static void
batch_settle(struct dispatch *d, struct batch *b)
{
	const struct queue_end *ends[SETTLED_MAX];
	size_t i;

	for (i = 0; i < b->n; i++)
		ends[i] = &b->items[i].end;
	if (b->n > 1 && queue_end_all(d->db, ends, b->n) == NULL) {
		for (i = 0; i < b->n; i++)
			task_settled(d, b->items[i].t, &b->items[i].outcome);
		b->n = 0;
	}
	for (i = 0; i < b->n; i++)
		b->items[i].t->progress = b->items[i].before;
	for (i = 0; i < b->n && database_is_ready(&d->database); i++)
		settle_one(&b->items[i]);
	b->n = 0;
	arena_clear(d->a);
}

/* Packs a large log in a child process, with its own connection. */
static pid_t
pack_apart(struct dispatch *d, const struct task *t)
{
	const struct err *e;
	struct db *db;
	pid_t pid = child_fork(-1);

	if (pid != 0)
		return pid;
	if ((e = db_open(&d->settings, 0, &db)) == NULL)
		e = joblog_pack(db, d->a, t->run.id);
	if (e != NULL)
		log_err(e, t->run.name);
	_exit(e == NULL ? 0 : 1);
}

static bool
waits_for_packer(const struct uploads *u, const struct task *t)
{
	return t->progress.log_at > PACK_HERE && u->packer > 0;
}

static bool
is_packed(const struct task *t)
{
	const struct progress *p = &t->progress;

	return t->is_adopted || p->log_at > PLAIN_MAX ||
	    p->chunks > PLAIN_CHUNKS;
}

/* The queue has everything; packing only saves space. */
static void
log_pack(struct dispatch *d, struct uploads *u, struct task *t)
{
	if (waits_for_packer(u, t))
		return;
	if (t->progress.log_at > PACK_HERE)
		u->packer = pack_apart(d, t);
	else if (is_packed(t))
		(void)database_done(&d->database,
		    joblog_pack(d->db, d->a, t->run.id), t->run.name);
	run_remove(&d->spool, &t->run);
	task_move(t, PHASE_CLOSED);
}

static bool
is_followed(const struct task *t)
{
	return task_is_live(t) && t->phase != PHASE_PREPARING;
}

static bool
is_due(const struct dispatch *d, const struct task *t, int64_t now)
{
	return !t->is_fenced && now >= t->retry_at &&
	    database_is_ready(&d->database);
}

/* The commit of its end makes the outcome last. As long as that is not possible,
 * the spool does. */
static void
outcome_keep(struct task *t)
{
	const struct err *e;

	if (t->is_synced)
		return;
	t->is_synced = true;
	if ((e = run_sync(&t->run)) != NULL)
		log_err(e, t->run.name);
}

/* A large result takes much memory, so its task ends alone. */
static size_t
batch_max(const struct task *t)
{
	struct stat st;

	return fstat(t->run.result, &st) == 0 && st.st_size <= RESULT_SMALL ?
	    SETTLED_MAX :
	    1;
}

static void
settle_due(struct dispatch *d, int64_t now)
{
	struct batch b = { .n = 0 };
	struct task *t;
	size_t i, most;

	for (i = 0; i < d->tasks->n; i++) {
		t = d->tasks->items[i];
		if (t->phase != PHASE_ENDED)
			continue;
		if (!is_due(d, t, now) || !lease_renew(d, t, now)) {
			outcome_keep(t);
			continue;
		}
		if (run_never_began(&t->run)) {
			task_move(t, PHASE_UNBEGUN);
			continue;
		}
		most = batch_max(t);
		if (b.n >= most)
			batch_settle(d, &b);
		if (settlement_make(d, t, &b.items[b.n]))
			b.n++;
		if (b.n >= most)
			batch_settle(d, &b);
	}
	batch_settle(d, &b);
}

static void
work_one(struct dispatch *d, struct uploads *u, struct task *t, int64_t now)
{
	if (!is_due(d, t, now))
		return;
	if (is_followed(t))
		task_follow(d, t, now);
	if (t->phase == PHASE_UNBEGUN)
		put_back(d, t);
	if (t->phase == PHASE_SETTLED)
		log_pack(d, u, t);
}

static void
uploads_work(struct dispatch *d, void *state, int64_t now)
{
	struct uploads *u = state;
	struct tasks *tasks = d->tasks;
	size_t i;

	settle_due(d, now);
	for (i = 0; i < tasks->n; i++) {
		arena_clear(d->a);
		work_one(d, u, tasks->items[i], time_mono_ms());
	}
	tasks_reap(tasks);
}

static int64_t
task_due(const struct uploads *u, const struct task *t, int64_t now)
{
	if (t->is_fenced)
		return INT64_MAX;
	if (is_followed(t) && t->retry_at > now)
		return t->retry_at;
	if (is_followed(t) && t->is_changed)
		return t->progress.upload_at > t->progress.first_at ?
		    t->progress.upload_at :
		    t->progress.first_at;
	if (is_followed(t))
		return t->progress.look_at < t->renew_at ? t->progress.look_at :
							   t->renew_at;
	if (t->phase == PHASE_ENDED || t->phase == PHASE_UNBEGUN)
		return t->retry_at;
	if (t->phase == PHASE_SETTLED && !waits_for_packer(u, t))
		return now;
	return INT64_MAX;
}

static int64_t
uploads_next(const struct dispatch *d, const void *state, int64_t now)
{
	const struct uploads *u = state;
	const struct tasks *tasks = d->tasks;
	int64_t due = INT64_MAX, at;
	size_t i;

	for (i = 0; i < tasks->n; i++)
		if ((at = task_due(u, tasks->items[i], now)) < due)
			due = at;
	at = d->database.at;
	return due < at ? at : due;
}

static void
uploads_child(struct dispatch *d, void *state, pid_t pid, int status)
{
	struct uploads *u = state;

	(void)d;
	(void)status;
	if (pid == u->packer)
		u->packer = 0;
}

/* While the schema is not checked, leases have to be renewed all the same. */
const struct part uploads_part = {
	.flags = PART_OFFLINE,
	.size = sizeof(struct uploads),
	.work = uploads_work,
	.next = uploads_next,
	.child = uploads_child,
};
