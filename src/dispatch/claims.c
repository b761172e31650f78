/* SPDX-License-Identifier: ISC */
/* Claims deployments while slots are free, and has their jobs started. */
#include "core/log.h"
#include "core/str.h"
#include "dispatch/backoff.h"
#include "dispatch/context.h"
#include "dispatch/labels.h"
#include "dispatch/part.h"
#include "dispatch/start.h"
#include "dispatch/waiting.h"

#define TURN_MS 20 /* for claims in a turn: logs wait for them */

/* Times are monotonic milliseconds. */
struct claims {
	int64_t poll_at; /* something may have been queued */
	int64_t at;      /* no claim before */
	int64_t pause;
	bool is_wanted;    /* there may be something to claim */
	bool is_held_back; /* by a Git server that does not answer */
	bool is_drained;   /* the last look left nothing */
};

static void
back_off(struct claims *c)
{
	c->pause = avoid_pause(c->pause);
	c->at = time_mono_ms() + c->pause;
	c->is_wanted = true;
}

/* How many live tasks fetch from that host. */
static size_t
fetching_from(const struct tasks *tasks, const char *host)
{
	const struct task *t;
	size_t i, n = 0;

	for (i = 0; i < tasks->n; i++) {
		t = tasks->items[i];
		if (task_is_live(t) && !t->fetch.is_over &&
		    str_eq(t->fetch.host, host))
			n++;
	}
	return n;
}

struct claiming {
	struct dispatch *d;
	struct claims *c;
};

/* Other deployments go before one that would only wait for its Git server. */
static bool
candidate_skip(void *context, const struct claim_candidate *one,
    const struct claim_candidate *chosen, size_t n)
{
	const struct claiming *claiming = context;
	struct dispatch *d = claiming->d;
	char host[FETCH_HOST], other[FETCH_HOST];
	size_t i, fetching;

	fetch_host(one->repository, host);
	if (host[0] == '\0')
		return false;
	fetching = fetching_from(d->tasks, host);
	for (i = 0; i < n; i++) {
		fetch_host(chosen[i].repository, other);
		fetching += str_eq(other, host);
	}
	if (fetching <
	    fetch_limit(d->hosts, host, (size_t)d->settings.runner.slots))
		return false;
	claiming->c->is_held_back = true;
	waiting_note(d, one->id,
	    arena_printf(d->a,
		"Other deployments fetch from %s, which has not responded yet.",
		host));
	return true;
}

/* How many slots are free.  Up to as many deployments as there are slots give
 * theirs up while their fetch hangs. */
static size_t
slots_free(const struct dispatch *d)
{
	const size_t slots = (size_t)d->settings.runner.slots;
	const size_t live = tasks_live(d->tasks);
	size_t i, hung = 0;

	for (i = 0; i < d->tasks->n && hung < slots; i++)
		hung += task_is_live(d->tasks->items[i]) &&
		    fetch_hangs(&d->tasks->items[i]->fetch);
	return live < slots + hung ? slots + hung - live : 0;
}

/* How many deployments may be claimed now.  After trouble on this host, one has
 * to start before the next is claimed. */
static size_t
claims_max(const struct dispatch *d)
{
	size_t i;

	if (d->sick.since != 0)
		return 0;
	if (d->sick.pause == 0)
		return slots_free(d);
	for (i = 0; i < d->tasks->n; i++)
		if (d->tasks->items[i]->phase == PHASE_PREPARING ||
		    d->tasks->items[i]->phase == PHASE_STARTING)
			return 0;
	return slots_free(d) > 0 ? 1 : 0;
}

static bool
is_claiming(const struct dispatch *d, const struct claims *c)
{
	return c->is_wanted && claims_max(d) > 0;
}

/* Nothing else waits: those that were avoided can be tried again at `due`. */
static void
found_all(struct claims *c, int64_t due)
{
	c->is_wanted = due != INT64_MAX;
	c->is_drained = !c->is_wanted && !c->is_held_back;
	if (c->is_wanted)
		c->at = due;
}

/* Whether another claim can follow. */
static bool
claims_take(struct dispatch *d, struct claims *c)
{
	struct claiming claiming = { d, c };
	int64_t ids[CLAIM_AVOID], due;
	const struct claimer by = { .owner = d->spool.owner,
		.runner = d->name,
		.labels = labels_json(d->a, d->settings.runner.labels),
		.lease = d->settings.runner.lease,
		.avoid = ids,
		.navoid = avoid_now(&d->avoid, ids, &due),
		.skips = candidate_skip,
		.context = &claiming };
	const struct claim *one;
	const struct err *e;
	struct arena_mark loaded;
	struct claimed claimed;
	size_t i;

	c->is_held_back = false;
	e = claim_next(d->db, d->a, &by, claims_max(d), &claimed);
	if (e != NULL && e->code == ERR_NOTFOUND) {
		(void)database_done(&d->database, NULL, "claim");
		found_all(c, due);
		return false;
	}
	if (!database_done(&d->database, e, "claim")) {
		d->database.is_doubtful = true;
		back_off(c);
		return false;
	}
	if (claimed.is_all)
		found_all(c, due);
	one = claimed.list.items;
	loaded = arena_mark(d->a);
	for (i = 0; i < claimed.list.n; i++) {
		if (!start_claimed(d, &one[i]))
			back_off(c);
		arena_rewind(d->a, &loaded);
	}
	return !claimed.is_all;
}

static void
poll_queue(struct dispatch *d, struct claims *c, int64_t now)
{
	if (d->claim_at != 0 && now >= d->claim_at) {
		d->claim_at = 0;
		c->is_wanted = true;
	}
	if (now < c->poll_at)
		return;
	c->poll_at = now + backoff_jitter(d->settings.runner.poll * 1000);
	c->is_wanted = true;
}

static void
claims_work(struct dispatch *d, void *state, int64_t now)
{
	struct claims *c = state;
	struct tasks *tasks = d->tasks;
	size_t i;

	for (i = 0; i < tasks->n; i++)
		if (tasks->items[i]->phase == PHASE_PREPARING &&
		    !start_prepare(d, tasks->items[i]))
			back_off(c);
	poll_queue(d, c, now);
	while (is_claiming(d, c) && database_is_ready(&d->database) &&
	    time_mono_ms() >= c->at && time_mono_ms() - now < TURN_MS) {
		arena_clear(d->a);
		if (!claims_take(d, c))
			break;
	}
	tasks_reap(tasks);
}

static int64_t
claims_next(const struct dispatch *d, const void *state, int64_t now)
{
	const struct claims *c = state;
	const struct tasks *tasks = d->tasks;
	int64_t due = c->poll_at, at;
	size_t i;

	if (is_claiming(d, c) && c->at < due)
		due = c->at;
	if (d->claim_at != 0 && d->claim_at < due)
		due = d->claim_at;
	for (i = 0; i < tasks->n; i++)
		if (tasks->items[i]->phase == PHASE_PREPARING &&
		    (at = start_due(tasks->items[i], now)) < due)
			due = at;
	return due;
}

/* New work does not wait for a deployment that could not start. */
static void
claims_events(void *state, unsigned events)
{
	struct claims *c = state;

	if ((events & (EVENT_QUEUE | EVENT_RELOAD)) != 0)
		c->is_wanted = true;
	if ((events & EVENT_WAKE) != 0)
		c->poll_at = c->at = 0;
}

static void
start_was_rejected(struct dispatch *d, struct claims *c, struct task *t,
    const struct wire *w)
{
	const char *why;
	const enum start_fate fate = start_rejected(d, t, w, &why);

	c->is_wanted = true;
	if (fate == START_ENDED)
		return;
	if (fate == START_BUSY ? !avoid_add(&d->avoid, t->run.id) :
				 !avoid_give_back(&d->avoid, t->run.id))
		back_off(c);
	waiting_note(d, t->run.id, why);
}

static void
claims_message(struct dispatch *d, void *state, const struct wire *w)
{
	struct claims *c = state;
	struct task *t = task_find(d->tasks, w->deployment, w->epoch);

	if (w->type == WIRE_STARTED && t != NULL) {
		start_confirmed(d, t, w);
		c->pause = 0;
	} else if (w->type == WIRE_REFUSED && t != NULL) {
		if (t->phase == PHASE_STARTING)
			start_was_rejected(d, c, t, w);
	} else if (w->type == WIRE_EXITED) {
		/* a deployment that was rejected may need this account */
		avoid_none(&d->avoid);
		c->at = 0;
		c->is_wanted = true;
	}
}

/* A finder has ended. */
static void
claims_child(struct dispatch *d, void *state, pid_t pid, int status)
{
	const struct tasks *tasks = d->tasks;
	size_t i;

	(void)state;
	for (i = 0; i < tasks->n; i++) {
		if (tasks->items[i]->clone.finder != pid)
			continue;
		tasks->items[i]->clone.finder = 0;
		tasks->items[i]->clone.status = status;
	}
}

static bool
claims_is_idle(const struct dispatch *d, const void *state, int64_t now)
{
	const struct claims *c = state;

	(void)now;
	return d->settings.runner.slots == 0 || d->sick.since != 0 ||
	    (c->is_drained && !c->is_wanted);
}

static void
claims_close(struct dispatch *d, void *state)
{
	const struct tasks *tasks = d->tasks;
	size_t i;

	(void)state;
	for (i = 0; i < tasks->n; i++)
		if (tasks->items[i]->phase == PHASE_PREPARING)
			start_abandon(d, tasks->items[i]);
}

const struct part claims_part = {
	.size = sizeof(struct claims),
	.work = claims_work,
	.next = claims_next,
	.events = claims_events,
	.message = claims_message,
	.child = claims_child,
	.is_idle = claims_is_idle,
	.close = claims_close,
};
