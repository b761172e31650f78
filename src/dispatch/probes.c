/* SPDX-License-Identifier: ISC */
/* While this runner is sick: probes whether it can start deployments again. */
#include <string.h>

#include "core/log.h"
#include "core/str.h"
#include "dispatch/context.h"
#include "dispatch/part.h"

static void
probe_failed(struct dispatch *d, const char *what, int error)
{
	sick_report(&d->sick,
	    arena_printf(d->a, "%s: %s.", what, strerror(error)));
}

/* The spool is this process's own; the monitor tries the rest. */
static void
probes_work(struct dispatch *d, void *state, int64_t now)
{
	const struct wire w = { .magic = WIRE_MAGIC, .type = WIRE_PROBE };
	struct sick *s = &d->sick;
	const struct err *e;

	(void)state;
	if (s->since == 0 || s->is_asked || now < s->at)
		return;
	if ((e = spool_probe(&d->spool)) != NULL)
		probe_failed(d, "The spool cannot be written", e->sys);
	else if ((e = wire_send(CONTEXT_WIRE, &w, NULL, 0)) != NULL)
		probe_failed(d, "The monitor cannot be reached", e->sys);
	else
		s->is_asked = true;
}

static int64_t
probes_next(const struct dispatch *d, const void *state, int64_t now)
{
	(void)state;
	(void)now;
	return d->sick.since == 0 || d->sick.is_asked ? INT64_MAX : d->sick.at;
}

static void
probes_message(struct dispatch *d, void *state, const struct wire *w)
{
	(void)state;
	if (w->type != WIRE_PROBED)
		return;
	if (w->error != 0) {
		probe_failed(d, "Workspaces or jobs cannot be created",
		    w->error);
		return;
	}
	sick_recover(&d->sick);
	d->events |= EVENT_QUEUE;
}

/* With --once, a probe that is due comes before the end. */
static bool
probes_is_idle(const struct dispatch *d, const void *state, int64_t now)
{
	return !d->sick.is_asked && probes_next(d, state, now) > now;
}

const struct part probes_part = {
	.flags = PART_OFFLINE,
	.work = probes_work,
	.next = probes_next,
	.message = probes_message,
	.is_idle = probes_is_idle,
};
