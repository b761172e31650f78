/* SPDX-License-Identifier: ISC */
/* Pauses. */
#ifndef SLIPWAY_DISPATCH_BACKOFF_H
#define SLIPWAY_DISPATCH_BACKOFF_H

#include <stdint.h>
#include <stdlib.h>

/* Twice the pause, within the bounds; the first one follows 0. */
static inline int64_t
backoff(int64_t pause, int64_t min, int64_t max)
{
	if (pause == 0)
		return min;
	return 2 * pause < max ? 2 * pause : max;
}

/* Varies the time at random, so that runners do not poll in step. */
static inline int64_t
backoff_jitter(int64_t ms)
{
	return ms * 3 / 4 + (int64_t)arc4random_uniform((uint32_t)ms / 2);
}

#endif
