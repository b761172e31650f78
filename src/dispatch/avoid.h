/* SPDX-License-Identifier: ISC */
/*
 * Deployments that could not start here: because their account was busy, so that
 * others get their slot for a while, or because of trouble on this host, so that
 * other runners take them.
 */
#ifndef SLIPWAY_DISPATCH_AVOID_H
#define SLIPWAY_DISPATCH_AVOID_H

#include <stdbool.h>

#include "queue/claim.h"

struct avoid {
	struct avoided {
		int64_t id;
		int64_t at; /* not before; monotonic milliseconds */
		int64_t pause;
		bool is_given_back; /* trouble; no end of a job changes that */
	} items[CLAIM_AVOID];
	size_t n;
};

/* False if the list is full. */
bool avoid_add(struct avoid *, int64_t id);
/* The same for a deployment that another runner should take. */
bool avoid_give_back(struct avoid *, int64_t id);
/* Fills in the deployments to avoid now, and when the first of them can be
 * tried again (INT64_MAX = there are none). Returns how many there are. */
size_t avoid_now(struct avoid *, int64_t ids[CLAIM_AVOID], int64_t *due);
/* A job has ended, so those whose account was busy can be tried again. */
void avoid_none(struct avoid *);
/* The pause after `pause`. */
int64_t avoid_pause(int64_t pause);

#endif
