/* SPDX-License-Identifier: ISC */
/* Reports that this runner is there, once a minute, when it becomes sick or well,
 * and when it stops. */
#include "core/str.h"
#include "dispatch/context.h"
#include "dispatch/labels.h"
#include "dispatch/part.h"
#include "store/runner.h"

#define REPORT "report the runner"

struct presence {
	int64_t at;             /* monotonic milliseconds */
	struct when started_at; /* 0 = nothing was reported */
};

static struct runner
runner_describe(struct dispatch *d, const struct presence *p)
{
	return (struct runner){ .name = d->name,
		.labels.s = labels_json(d->a, d->settings.runner.labels),
		.version = SLIPWAY_VERSION,
		.slots = d->settings.runner.slots,
		.started_at = p->started_at,
		.sick_reason = d->sick.since == 0 ? NULL : d->sick.why };
}

static int64_t
presence_next(const struct dispatch *d, const void *state, int64_t now)
{
	const struct presence *p = state;

	(void)now;
	return d->sick.is_told ? p->at : 0;
}

/* A runner that was sick when it was stopped probes before it claims. */
static bool
presence_begin(struct dispatch *d, struct presence *p)
{
	struct runner_past past;

	if (!database_done(&d->database,
		runner_recall(d->db, d->a, d->name, &past), REPORT))
		return false;
	p->started_at = past.now;
	if (past.sick_reason != NULL)
		sick_report(&d->sick, past.sick_reason);
	return true;
}

static void
presence_work(struct dispatch *d, void *state, int64_t now)
{
	struct presence *p = state;
	struct runner runner;

	if (now < presence_next(d, state, now) ||
	    (p->started_at.ms == 0 && !presence_begin(d, p)))
		return;
	runner = runner_describe(d, p);
	if (!database_done(&d->database, runner_report(d->db, &runner), REPORT))
		return;
	p->at = now + (int64_t)RUNNER_REPORT * 1000;
	d->sick.is_told = true;
}

static void
presence_events(void *state, unsigned events)
{
	struct presence *p = state;

	if ((events & EVENT_RELOAD) != 0)
		p->at = 0;
}

/* Before --once ends. */
static bool
presence_is_idle(const struct dispatch *d, const void *state, int64_t now)
{
	(void)state;
	(void)now;
	return d->sick.is_told;
}

/* A timer starts --once again: it stays online until it misses reports. */
static void
presence_close(struct dispatch *d, void *state)
{
	const struct presence *p = state;
	struct runner runner;

	if (d->once || p->started_at.ms == 0 ||
	    !database_is_usable(&d->database))
		return;
	runner = runner_describe(d, p);
	(void)database_done(&d->database, runner_withdraw(d->db, &runner),
	    "report that the runner stops");
}

const struct part presence_part = {
	.size = sizeof(struct presence),
	.work = presence_work,
	.next = presence_next,
	.events = presence_events,
	.is_idle = presence_is_idle,
	.close = presence_close,
};
