/* SPDX-License-Identifier: ISC */
/*
 * Deployments that the monitor could not start because their account was busy.
 * They stay on the queue for a while, so that others get their slot.
 */
#ifndef SLIPWAY_DISPATCH_AVOID_H
#define SLIPWAY_DISPATCH_AVOID_H

#include <stdbool.h>

#include "store/claim.h"

struct avoid {
	struct avoided {
		int64_t id;
		int64_t at; /* not before; monotonic milliseconds */
		int64_t pause;
	} items[CLAIM_AVOID];
	size_t n;
};

/* False if the list is full. */
bool avoid_add(struct avoid *, int64_t id);
/* Fills in the deployments to avoid now, and when the first of them can be
 * tried again (INT64_MAX = there are none). Returns how many there are. */
size_t avoid_now(struct avoid *, int64_t ids[CLAIM_AVOID], int64_t *due);
/* A job has ended, so all of them can be tried again. */
void avoid_none(struct avoid *);
/* The pause after `pause`. */
int64_t avoid_pause(int64_t pause);

#endif
