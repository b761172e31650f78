/* SPDX-License-Identifier: ISC */
/* Fires the schedules that are due. Every runner tries; the first one does. */
#include "core/log.h"
#include "core/str.h"
#include "deploy/scheduled.h"
#include "dispatch/context.h"
#include "dispatch/part.h"

#define LOOK_MS 10000 /* for schedules that others have created or changed */
#define WOKEN_MS 500
#define FAILED_MS 2000
#define TURN_MS 50 /* for schedules in a turn: logs wait for them */
#define SCHEDULES "schedules"

struct schedules {
	int64_t at;      /* monotonic milliseconds */
	int64_t after;   /* id of the last one in this round */
	int64_t checked; /* id of the last one whose time was checked */
};

static void
check_one(struct dispatch *d, const struct schedule *s)
{
	char was[STR_TIME_SIZE], is[STR_TIME_SIZE];
	const struct err *e;
	int64_t next;
	bool changed;

	e = scheduled_correct(d->db, s, &next, &changed);
	if (!database_done(&d->database, e, SCHEDULES) || !changed)
		return;
	str_time(was, s->next_at.ms);
	str_time(is, next);
	log_warn("schedule %lld fires next at %s instead of %s: the clock of "
		 "the database was set back",
	    (long long)s->id, is, was);
}

/* Checks the times of some schedules, others in the next round. */
static void
schedules_check(struct dispatch *d, struct schedules *s)
{
	const struct schedule *one;
	struct list list;
	size_t i;

	if (!database_done(&d->database,
		schedule_later(d->db, d->a, s->checked, &list), SCHEDULES))
		return;
	one = list.items;
	for (i = 0; i < list.n; i++)
		check_one(d, &one[i]);
	s->checked = list.n < SCHEDULE_CHECKED ? 0 : one[list.n - 1].id;
}

/* Ends a round: looks again when the next one is due. */
static void
round_end(struct dispatch *d, struct schedules *s, int64_t now)
{
	const struct err *e;
	struct maybe left;

	s->after = 0;
	s->at = now + LOOK_MS;
	schedules_check(d, s);
	e = schedule_wait(d->db, d->a, &left);
	if (database_done(&d->database, e, SCHEDULES) && left.set &&
	    left.n > 0 && left.n < LOOK_MS)
		s->at = now + left.n;
}

static void
schedule_fire(struct dispatch *d, const struct schedule *due)
{
	struct deploy deploy = { .db = d->db, .settings = &d->settings };
	const struct err *e;
	int64_t id;

	e = scheduled_fire(&deploy, due, d->name, &id);
	if (!database_done(&d->database, e, SCHEDULES) || id == 0)
		return;
	log_info("%lld: started by schedule %lld", (long long)id,
	    (long long)due->id);
	d->events |= EVENT_QUEUE | EVENT_STATUS;
}

static bool
has_time(const struct dispatch *d, int64_t began)
{
	return database_is_ready(&d->database) &&
	    time_mono_ms() - began < TURN_MS;
}

static void
schedules_work(struct dispatch *d, void *state, int64_t now)
{
	struct schedules *s = state;
	struct schedule due;
	const struct err *e;

	if (now < s->at)
		return;
	while (has_time(d, now)) {
		arena_clear(d->a);
		e = schedule_due(d->db, d->a, s->after, &due);
		if (e != NULL && e->code == ERR_NOTFOUND) {
			round_end(d, s, now);
			return;
		}
		if (!database_done(&d->database, e, SCHEDULES)) {
			s->at = now + FAILED_MS;
			return;
		}
		s->after = due.id;
		schedule_fire(d, &due);
	}
}

static int64_t
schedules_next(const struct dispatch *d, const void *state, int64_t now)
{
	const struct schedules *s = state;

	(void)d;
	(void)now;
	return s->at;
}

/* A schedule may have changed, but most often a deployment was queued, and its
 * job starts now. */
static void
schedules_events(void *state, unsigned events)
{
	struct schedules *s = state;
	const int64_t soon = time_mono_ms() + WOKEN_MS;

	if ((events & EVENT_WAKE) != 0 && s->at > soon)
		s->at = soon;
}

/* With --once a round comes before the end. */
static bool
schedules_is_idle(const struct dispatch *d, const void *state, int64_t now)
{
	const struct schedules *s = state;

	(void)d;
	return s->at > now;
}

const struct part schedules_part = {
	.size = sizeof(struct schedules),
	.work = schedules_work,
	.next = schedules_next,
	.events = schedules_events,
	.is_idle = schedules_is_idle,
};
