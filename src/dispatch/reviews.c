/* SPDX-License-Identifier: ISC */
/*
 * Reads which deployments the queue holds for this dispatcher, to learn of
 * cancellations, and of claims whose response was lost.
 */
#include "core/str.h"
#include "dispatch/backoff.h"
#include "dispatch/context.h"
#include "dispatch/control.h"
#include "dispatch/part.h"
#include "dispatch/unstarted.h"

#define RETRY_MS 1000

/* Times are monotonic milliseconds. */
struct reviews {
	int64_t at;
	int64_t doubt_at;   /* while a claim is in doubt */
	int64_t late_until; /* a claim that was given up may still arrive */
};

static int64_t
reviews_next(const struct dispatch *d, const void *state, int64_t now)
{
	const struct reviews *r = state;

	if (d->database.is_doubtful)
		return r->doubt_at;
	if (d->tasks->n > 0 || now < r->late_until)
		return r->at;
	return INT64_MAX;
}

static void
held_compare(struct dispatch *d, const struct held *h)
{
	struct task *t = task_find(d->tasks, h->id, h->epoch);

	if (t != NULL && h->cancel)
		control_cancel(d, t);
	/* a claim whose response was lost */
	if (t == NULL && !run_exists(&d->spool, h->id, h->epoch)) {
		(void)unstarted_release(d, h->id, h->epoch);
		d->events |= EVENT_QUEUE;
	}
}

/* A lost claim has to return to the queue before its lease expires. */
static int64_t
review_interval(const struct settings_runner *s)
{
	const int64_t third = s->lease * 1000 / 3;
	const int64_t poll = backoff_jitter(s->poll * 1000);

	return poll < third ? poll : third;
}

static void
claims_review(struct dispatch *d, struct reviews *r, int64_t now)
{
	const struct held *h;
	struct list list;
	size_t i;

	if (d->database.is_doubtful)
		r->late_until = now + d->settings.runner.lease * 1000;
	r->at = r->doubt_at = now + RETRY_MS;
	if (!database_done(&d->database,
		queue_held(d->db, d->a, d->spool.owner, &list), "review"))
		return;
	d->database.is_doubtful = false;
	r->at = now + review_interval(&d->settings.runner);
	h = list.items;
	for (i = 0; i < list.n; i++)
		held_compare(d, &h[i]);
	if (!d->database.is_doubtful)
		r->doubt_at = 0;
}

static void
reviews_work(struct dispatch *d, void *state, int64_t now)
{
	if (now >= reviews_next(d, state, now))
		claims_review(d, state, now);
}

static void
reviews_events(void *state, unsigned events)
{
	struct reviews *r = state;

	if ((events & EVENT_WAKE) != 0)
		r->at = 0;
}

static bool
reviews_is_idle(const struct dispatch *d, const void *state, int64_t now)
{
	(void)state;
	(void)now;
	return !d->database.is_doubtful;
}

static void
reviews_close(struct dispatch *d, void *state)
{
	struct reviews *r = state;

	if (d->database.is_doubtful && database_is_ready(&d->database))
		claims_review(d, r, time_mono_ms());
}

const struct part reviews_part = {
	.size = sizeof(struct reviews),
	.work = reviews_work,
	.next = reviews_next,
	.events = reviews_events,
	.is_idle = reviews_is_idle,
	.close = reviews_close,
};
