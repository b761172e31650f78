/* SPDX-License-Identifier: ISC */
/* Pauses that double after each failure. */
#ifndef SLIPWAY_DISPATCH_BACKOFF_H
#define SLIPWAY_DISPATCH_BACKOFF_H

#include <stdint.h>

/* The pause after `pause`; 0 stands for none so far. */
static inline int64_t
backoff(int64_t pause, int64_t min, int64_t max)
{
	if (pause == 0)
		return min;
	return 2 * pause < max ? 2 * pause : max;
}

#endif
