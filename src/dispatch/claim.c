/* SPDX-License-Identifier: ISC */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/log.h"
#include "core/str.h"
#include "dispatch/dispatch.h"
#include "store/joblog.h"

#define DESCRIPTION_MAX ((size_t)32 << 20)
#define PAUSE_MIN 200 /* milliseconds, after a start that was refused */
#define PAUSE_MAX 10000
#define DOUBT_MS 1000
#define START "start of a job"
#define TURN_MAX 4 /* claims a turn, so that logs do not wait for them */

static const char foreign[] =
    "Processes of the account that it needs run which this runner did not"
    " start: another service on the host may use the same user ids"
    " (runner.uid_first).";

/* Why the monitor could not start a deployment. */
static const char *const obstacles[] = {
	[WIRE_WHY_NONE] = "It could not be started.",
	[WIRE_WHY_BUSY] =
	    "Another deployment runs under the account that it needs.",
	[WIRE_WHY_FOREIGN] = foreign,
	[WIRE_WHY_ACCOUNT] =
	    "The runner has no account that this project may run under.",
	[WIRE_WHY_WORKSPACE] =
	    "The project's directory could not be made on the runner.",
	[WIRE_WHY_PROCESS] = "The runner could not start a process for it.",
};

size_t
claim_live(const struct dispatch *d)
{
	size_t i, n = 0;

	for (i = 0; i < d->n; i++)
		if (task_is_live(d->tasks[i]))
			n++;
	return n;
}

static int64_t
pause_next(int64_t pause)
{
	if (pause == 0)
		return PAUSE_MIN;
	return 2 * pause < PAUSE_MAX ? 2 * pause : PAUSE_MAX;
}

static void
pause_claims(struct dispatch *d)
{
	d->claim_pause = pause_next(d->claim_pause);
	d->claim_at = time_mono_ms() + d->claim_pause;
	d->claim = true;
}

/* It is left alone for a while, so that it keeps others from no slot. */
static void
refusal_add(struct dispatch *d, int64_t id)
{
	struct refusal *r = d->refused;

	while (r < d->refused + d->nrefused && r->id != id)
		r++;
	if (r == d->refused + QUEUE_AVOID) {
		pause_claims(d);
		return;
	}
	if (r == d->refused + d->nrefused) {
		d->nrefused++;
		*r = (struct refusal){ .id = id };
	}
	r->pause = pause_next(r->pause);
	r->at = time_mono_ms() + r->pause;
	d->claim = true;
}

/* Those that are left alone now; forgets what was not refused again. */
static size_t
refusals(struct dispatch *d, int64_t ids[QUEUE_AVOID], int64_t *due)
{
	const int64_t now = time_mono_ms();
	size_t i, kept = 0, n = 0;

	*due = INT64_MAX;
	for (i = 0; i < d->nrefused; i++) {
		if (d->refused[i].at + PAUSE_MAX < now)
			continue;
		d->refused[kept++] = d->refused[i];
		if (d->refused[i].at <= now)
			continue;
		ids[n++] = d->refused[i].id;
		if (d->refused[i].at < *due)
			*due = d->refused[i].at;
	}
	d->nrefused = kept;
	return n;
}

void
claim_retry(struct dispatch *d)
{
	size_t i;

	for (i = 0; i < d->nrefused; i++)
		d->refused[i].at = 0;
	d->claim_at = 0;
}

/* Back on the queue; where that fails the next review does it. */
static void
put_back(struct dispatch *d, int64_t id, int64_t epoch)
{
	const struct err *e = queue_release(d->db, id, epoch);

	teller_wake(d);
	if (e != NULL && e->code == ERR_PRECONDITION)
		return;
	if (!database_done(&d->database, e, "put a deployment back"))
		d->database.is_doubtful = true;
}

static void
end_unstarted(struct dispatch *d, int64_t id, int64_t epoch,
    const struct queue_end *how)
{
	struct queue_end end = *how;
	const struct err *e;

	end.id = id;
	end.epoch = epoch;
	teller_wake(d);
	e = queue_end(d->db, &end);
	if (e != NULL && e->code == ERR_PRECONDITION)
		return;
	if (!database_done(&d->database, e, "end a deployment"))
		d->database.is_doubtful = true;
}

static void
close_unstarted(struct dispatch *d, struct task *t)
{
	spool_remove(d, t);
	task_move(t, PHASE_CLOSED);
}

static const struct err *
ask_start(struct dispatch *d, struct task *t)
{
	struct wire w = { .magic = WIRE_MAGIC,
		.type = WIRE_START,
		.deployment = t->id,
		.epoch = t->epoch,
		.project = t->project,
		.limit = t->limit };
	int fds[WIRE_FD__REQUEST];
	const struct err *e;
	size_t i;

	if ((e = description_end(t)) != NULL ||
	    (e = spool_make(d, t, &t->description, fds)) != NULL)
		return e;
	(void)memcpy(w.dir, t->dir, strlen(t->dir));
	e = wire_send(DISPATCH_WIRE, &w, fds, WIRE_FD__REQUEST);
	for (i = 0; i < WIRE_FD__REQUEST; i++)
		(void)close(fds[i]);
	if (e != NULL)
		spool_remove(d, t);
	return e;
}

static void
start(struct dispatch *d, struct task *t)
{
	const struct err *e = project_make_room(d, t->project);

	if (e == NULL)
		e = ask_start(d, t);
	clone_forget(t);
	if (e != NULL) {
		log_fault(e, START);
		task_move(t, PHASE_CLOSED);
		put_back(d, t->id, t->epoch);
		pause_claims(d);
		return;
	}
	log_fault_over(START);
	project_mark(d, t->project);
	task_move(t, PHASE_STARTING);
	log_info("%s: starts, project %lld", t->name, (long long)t->project);
}

static struct task *
task_claimed(struct dispatch *d, const struct claim *c)
{
	struct task *t = task_open(d);

	t->id = c->id;
	t->epoch = c->epoch;
	t->project = c->project_id;
	t->flags = TASK_MEASURED;
	(void)snprintf(t->name, sizeof(t->name), "%lld.%lld", (long long)c->id,
	    (long long)c->epoch);
	(void)snprintf(t->dir, sizeof(t->dir), "%s", c->project_dir);
	fetch_host(c->repository, t->host);
	t->claimed_at = time_mono_ms();
	t->renew_at = t->claimed_at + d->settings.runner.lease * 1000 / 3;
	task_move(t, PHASE_PREPARING);
	buf_init(&t->description, DESCRIPTION_MAX);
	return t;
}

static void
end_canceled(struct dispatch *d, int64_t id, int64_t epoch)
{
	const struct queue_end canceled = { .reason = REASON_CANCELED,
		.detail = state_unstarted(REASON_CANCELED) };

	end_unstarted(d, id, epoch, &canceled);
}

/* Its repository was found, or is not to be fetched. */
static void
answered(struct dispatch *d, struct task *t)
{
	const struct queue_end failed = { .reason = REASON_CHECKOUT,
		.detail = t->refusal };

	if (t->refusal == NULL) {
		start(d, t);
		return;
	}
	log_warn("%s: is not fetched: %s", t->name, t->refusal);
	clone_forget(t);
	task_move(t, PHASE_CLOSED);
	end_unstarted(d, t->id, t->epoch, &failed);
}

/* What is claimed either starts or ends here, perhaps after its credential was
 * found. */
static void
claimed(struct dispatch *d, const struct claim *c)
{
	struct queue_end failed = { .reason = REASON_RUNNER,
		.detail = "What it needs could not be read on the runner: see "
			  "the runner's log." };
	const struct err *e;
	struct task *t;

	if (c->cancel) {
		end_canceled(d, c->id, c->epoch);
		return;
	}
	t = task_claimed(d, c);
	t->limit = description_limit(&d->settings.runner, c);
	if ((e = description_write(d, d->a, c, &t->description)) != NULL) {
		log_error("%s: %s", t->name, e->msg);
		if (e->detail[0] != '\0')
			failed.detail = arena_strdup(d->a, e->detail);
		clone_forget(t);
		task_move(t, PHASE_CLOSED);
		end_unstarted(d, c->id, c->epoch, &failed);
		return;
	}
	clone_ask(d, t, c);
	if (clone_answer(d, t))
		answered(d, t);
}

void
claim_asking(struct dispatch *d, struct task *t)
{
	int64_t lease = d->settings.runner.lease, now = time_mono_ms();
	const struct err *e;

	if (now >= t->renew_at && database_is_ready(&d->database)) {
		e = queue_renew(d->db, t->id, t->epoch, d->owner, lease);
		if (e != NULL && e->code == ERR_PRECONDITION) {
			log_err(e, t->name);
			clone_forget(t);
			task_move(t, PHASE_CLOSED);
			return;
		}
		if (database_done(&d->database, e, t->name))
			t->renew_at = now + lease * 1000 / 3;
	}
	if ((t->flags & TASK_CANCEL) != 0) {
		clone_forget(t);
		task_move(t, PHASE_CLOSED);
		end_canceled(d, t->id, t->epoch);
	} else if (clone_answer(d, t)) {
		answered(d, t);
	}
}

bool
claim_wanted(const struct dispatch *d)
{
	return d->claim && claim_live(d) < (size_t)d->settings.runner.slots;
}

/* Others may go before one that would only wait for its Git server. */
static bool
skips(void *context, int64_t id, const char *repository)
{
	struct dispatch *d = context;
	char host[FETCH_HOST];

	fetch_host(repository, host);
	if (!fetch_is_full(d, host))
		return false;
	d->held_back = true;
	waiting_say(d, id,
	    arena_printf(d->a,
		"As many deployments fetch from %s as may at a time; it does "
		"not answer them yet.",
		host));
	return true;
}

/* Whether there was one to claim. */
static bool
claim_one(struct dispatch *d)
{
	int64_t ids[QUEUE_AVOID], due;
	const struct queue_claimer by = { .owner = d->owner,
		.runner = d->name,
		.lease = d->settings.runner.lease,
		.avoid = ids,
		.navoid = refusals(d, ids, &due),
		.skips = skips,
		.context = d };
	const struct err *e;
	struct claim c;
	bool found;

	arena_clear(d->a);
	d->held_back = false;
	e = queue_claim(d->db, d->a, &by, &c);
	found = e == NULL;
	if (e != NULL && e->code == ERR_NOTFOUND) {
		d->claim = due != INT64_MAX;
		d->drained = !d->claim && !d->held_back;
		if (d->claim)
			d->claim_at = due;
		e = NULL;
	}
	if (!database_done(&d->database, e, "claim")) {
		d->database.is_doubtful = true;
		d->late_until = time_mono_ms() +
		    d->settings.runner.lease * 1000;
		pause_claims(d);
		return false;
	}
	if (found)
		claimed(d, &c);
	return found;
}

void
claim_work(struct dispatch *d)
{
	int n;

	for (n = 0; n < TURN_MAX && claim_wanted(d) &&
	     database_is_ready(&d->database) && time_mono_ms() >= d->claim_at;
	     n++)
		if (!claim_one(d))
			return;
}

void
claim_started(struct dispatch *d, struct task *t, const struct wire *w)
{
	log_debug("%s: process %lld", t->name, (long long)w->pid);
	if (t->phase == PHASE_STARTING)
		task_move(t, PHASE_RUNNING);
	d->claim_pause = 0;
	if ((t->flags & TASK_CANCEL) != 0 && spool_cancel(d, t) != NULL)
		log_warn("%s: cannot be told to end", t->name);
}

void
claim_refused(struct dispatch *d, struct task *t, const struct wire *w)
{
	struct queue_end end = { .reason = REASON_WORKSPACE,
		.detail = obstacles[WIRE_WHY_NONE] };

	if (t->phase != PHASE_STARTING)
		return;
	close_unstarted(d, t);
	if (w->status == WIRE_WHY_BUSY || w->status == WIRE_WHY_FOREIGN) {
		put_back(d, t->id, t->epoch);
		refusal_add(d, t->id);
		waiting_say(d, t->id, obstacles[w->status]);
		return;
	}
	if (w->status > 0 &&
	    (size_t)w->status < sizeof(obstacles) / sizeof(obstacles[0]))
		end.detail = obstacles[w->status];
	log_error("%s: was refused: %s%s%s", t->name, end.detail,
	    w->error == 0 ? "" : " ", w->error == 0 ? "" : strerror(w->error));
	end_unstarted(d, t->id, t->epoch, &end);
	d->claim = true;
}

int64_t
claim_review_due(const struct dispatch *d)
{
	if (d->database.is_doubtful)
		return d->doubt_at;
	if (d->n > 0 || time_mono_ms() < d->late_until)
		return d->review_at;
	return INT64_MAX;
}

void
claim_review(struct dispatch *d)
{
	const int64_t now = time_mono_ms();
	const struct held *h;
	struct list list;
	struct task *t;
	size_t i;

	if (now < claim_review_due(d) || !database_is_ready(&d->database))
		return;
	/* unless all goes well */
	d->review_at = d->doubt_at = now + DOUBT_MS;
	if (!database_done(&d->database,
		queue_held(d->db, d->a, d->owner, &list), "review"))
		return;
	d->database.is_doubtful = false;
	/* what is found has to be put back before its lease is over */
	d->review_at = now + d->settings.runner.lease * 1000 / 3;
	h = list.items;
	for (i = 0; i < list.n; i++) {
		t = task_find(d, h[i].id, h[i].epoch);
		if (t != NULL && h[i].cancel)
			task_cancel(d, t);
		/* taken by a claim whose answer was lost */
		if (t == NULL && !spool_has(d, h[i].id, h[i].epoch)) {
			put_back(d, h[i].id, h[i].epoch);
			d->claim = true;
		}
	}
	if (!d->database.is_doubtful)
		d->doubt_at = 0;
}

void
claim_leave(struct dispatch *d)
{
	size_t i;

	d->doubt_at = 0;
	if (d->database.is_doubtful)
		claim_review(d);
	for (i = 0; i < d->n; i++) {
		if (d->tasks[i]->phase != PHASE_PREPARING)
			continue;
		clone_forget(d->tasks[i]);
		if (database_is_ready(&d->database))
			put_back(d, d->tasks[i]->id, d->tasks[i]->epoch);
		else
			d->database.is_doubtful = true;
	}
}

/* Ends one that a dispatcher held which died, and which may have run. */
static bool
end_lost(struct dispatch *d, const struct held *h)
{
	struct queue_end end = { .reason = REASON_LOST,
		.detail = "The runner was stopped before it could say how it "
			  "ended." };
	struct joblog_state state = { .size = 0 };

	log_warn("%lld: was lost by the runner", (long long)h->id);
	if (!database_done(&d->database,
		joblog_state(d->db, d->a, h->id, &state), "settle"))
		return false;
	end.log_size = state.size;
	end_unstarted(d, h->id, h->epoch, &end);
	return true;
}

/* What a dispatcher of this spool held that died, and for which it had made no
 * directory: nobody was asked to start it, but where the machine went down
 * since the directory itself may be lost. */
static bool
settle_owner(struct dispatch *d, const struct dead_owner *owner)
{
	const struct held *h;
	struct list list;
	size_t i;

	if (!database_done(&d->database,
		queue_held(d->db, d->a, owner->name, &list), "settle"))
		return false;
	h = list.items;
	for (i = 0; i < list.n; i++) {
		if (task_find(d, h[i].id, h[i].epoch) != NULL ||
		    spool_has(d, h[i].id, h[i].epoch))
			continue;
		if (owner->booted) {
			log_info("%lld: never ran; it is put back",
			    (long long)h[i].id);
			put_back(d, h[i].id, h[i].epoch);
		} else if (!end_lost(d, &h[i])) {
			return false;
		}
		d->claim = true;
		if (!database_is_ready(&d->database))
			return false;
	}
	return true;
}

void
claim_namesakes(struct dispatch *d)
{
	const char *me = arena_printf(d->a, "runner %s", d->name);
	const struct held *h;
	struct list list;
	size_t i, n = 0;

	if (!database_done(&d->database,
		queue_held_by_runner(d->db, d->a, d->name, &list), "namesakes"))
		return;
	h = list.items;
	for (i = 0; i < list.n; i++)
		if (task_find(d, h[i].id, h[i].epoch) == NULL &&
		    !spool_has(d, h[i].id, h[i].epoch) && h[i].owner != NULL &&
		    !spool_owner_alive(d, h[i].owner))
			n++;
	if (n > 0)
		log_fault(
		    err_new(ERR_CONFLICT,
			"another runner has this name and holds "
			"deployments, or one did whose spool is gone; they "
			"are left alone while their leases last: see "
			"runner.name"),
		    me);
	else
		log_fault_over(me);
}

void
claim_settle(struct dispatch *d)
{
	const struct dead_owner *owner;
	struct list dead;
	size_t i;

	if (!d->settle || !database_is_ready(&d->database))
		return;
	spool_dead(d, d->a, &dead);
	owner = dead.items;
	for (i = 0; i < dead.n; i++)
		if (!settle_owner(d, &owner[i]))
			return;
	claim_namesakes(d);
	spool_forget(d, &dead);
	d->settle = false;
}
