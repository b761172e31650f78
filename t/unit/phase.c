/* SPDX-License-Identifier: ISC */
/* Every pair of phases: a transition is legal only if it is listed here. */
#include "dispatch/phase.h"

#include "tap.h"

static const struct {
	enum phase from;
	enum phase to;
	const char *because;
} legal[] = {
	{ PHASE_NEW, PHASE_PREPARING, "a deployment is claimed" },
	{ PHASE_NEW, PHASE_RUNNING, "a run is adopted" },
	{ PHASE_PREPARING, PHASE_STARTING, "its credential is known" },
	{ PHASE_PREPARING, PHASE_CLOSED, "it is canceled before its start" },
	{ PHASE_STARTING, PHASE_RUNNING, "the monitor has started it" },
	{ PHASE_STARTING, PHASE_ENDED, "its job ends at once" },
	{ PHASE_STARTING, PHASE_CLOSED, "the monitor cannot start it" },
	{ PHASE_RUNNING, PHASE_SWEEPING, "the job of an adopted run ends" },
	{ PHASE_RUNNING, PHASE_ENDED, "the monitor reports its end" },
	{ PHASE_SWEEPING, PHASE_ENDED, "nothing of it is left" },
	{ PHASE_ENDED, PHASE_UNBEGUN, "it never ran" },
	{ PHASE_ENDED, PHASE_SETTLED, "the queue has its outcome" },
	{ PHASE_ENDED, PHASE_DROPPED, "another dispatcher holds it" },
	{ PHASE_UNBEGUN, PHASE_DROPPED, "it is back on the queue" },
	{ PHASE_SETTLED, PHASE_CLOSED, "its log is packed" },
	{ PHASE_DROPPED, PHASE_CLOSED, "its directory is removed" },
};
#define NLEGAL (sizeof(legal) / sizeof(legal[0]))

static const char *
reason(enum phase from, enum phase to)
{
	size_t i;

	for (i = 0; i < NLEGAL; i++)
		if (legal[i].from == from && legal[i].to == to)
			return legal[i].because;
	return NULL;
}

static void
pair(enum phase from, enum phase to)
{
	const char *why = reason(from, to);

	if (why != NULL)
		(void)ok(phase_follows(from, to), "%s -> %s is legal: %s",
		    phase_kinds[from].name, phase_kinds[to].name, why);
	else
		(void)ok(!phase_follows(from, to), "%s -> %s is illegal",
		    phase_kinds[from].name, phase_kinds[to].name);
}

int
main(void)
{
	enum phase from, to;
	bool ends = true;

	for (from = PHASE_NEW; from < PHASE__MAX; from++)
		for (to = PHASE_NEW; to < PHASE__MAX; to++)
			pair(from, to);
	/* A task without a job never gets one again. */
	for (from = PHASE_NEW; from < PHASE__MAX; from++)
		for (to = PHASE_NEW; to < PHASE__MAX; to++)
			if (!phase_kinds[from].is_live &&
			    phase_kinds[to].is_live && phase_follows(from, to))
				ends = false;
	(void)ok(ends, "no phase without a job leads to one with a job");
	return tap_done();
}
