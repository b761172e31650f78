/* SPDX-License-Identifier: ISC */
/*
 * The phases of a task, and the table of legal transitions between them.
 *
 * A phase says what happens next.  Facts about a task (another dispatcher holds
 * it, a cancellation was requested) are not phases.
 */
#ifndef SLIPWAY_DISPATCH_PHASE_H
#define SLIPWAY_DISPATCH_PHASE_H

#include <stdbool.h>

enum phase {
	PHASE_NEW,
	PHASE_PREPARING, /* claimed; its address and credential are looked up */
	PHASE_STARTING, /* a request to start its job was sent to the monitor */
	PHASE_RUNNING,
	PHASE_SWEEPING, /* its job has ended; the monitor sweeps */
	PHASE_ENDED,    /* no process is left; the queue needs the outcome */
	PHASE_UNBEGUN,  /* it never ran; it returns to the queue */
	PHASE_SETTLED,  /* the queue has the outcome; its log can be packed */
	PHASE_DROPPED,  /* only its directory is left */
	PHASE_CLOSED,   /* nothing is left; its memory can be freed */
	PHASE__MAX
};

struct phase_kind {
	const char *name;
	bool is_live;  /* it has, or may soon have, a job: it takes a slot */
	unsigned next; /* 1 << phase, for each phase that may follow */
};

extern const struct phase_kind phase_kinds[PHASE__MAX];

/* Whether the table allows the transition. */
bool phase_follows(enum phase from, enum phase to);

#endif
