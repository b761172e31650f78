/* SPDX-License-Identifier: ISC */
#include "dispatch/phase.h"

#define TO(phase) (1U << PHASE_##phase)

const struct phase_kind phase_kinds[PHASE__MAX] = {
	[PHASE_NEW] = {
		.name = "new",
		.is_live = true,
		/* a claim, or a run that was found in the spool */
		.next = TO(PREPARING) | TO(RUNNING),
	},
	[PHASE_PREPARING] = {
		.name = "preparing",
		.is_live = true,
		.next = TO(STARTING) | TO(CLOSED),
	},
	[PHASE_STARTING] = {
		.name = "starting",
		.is_live = true,
		/* closed: the monitor could not start it */
		.next = TO(RUNNING) | TO(ENDED) | TO(CLOSED),
	},
	[PHASE_RUNNING] = {
		.name = "running",
		.is_live = true,
		.next = TO(SWEEPING) | TO(ENDED),
	},
	[PHASE_SWEEPING] = {
		.name = "sweeping",
		.is_live = true,
		.next = TO(ENDED),
	},
	[PHASE_ENDED] = {
		.name = "ended",
		/* dropped: another dispatcher holds it */
		.next = TO(UNBEGUN) | TO(SETTLED) | TO(DROPPED),
	},
	[PHASE_UNBEGUN] = { .name = "unbegun", .next = TO(DROPPED) },
	[PHASE_SETTLED] = { .name = "settled", .next = TO(CLOSED) },
	[PHASE_DROPPED] = { .name = "dropped", .next = TO(CLOSED) },
	[PHASE_CLOSED] = { .name = "closed" },
};

bool
phase_follows(enum phase from, enum phase to)
{
	return (phase_kinds[from].next & 1U << to) != 0;
}
