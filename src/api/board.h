/* SPDX-License-Identifier: ISC */
/* What master and workers share: a page of counters and flags that the
 * workers inherit. */
#ifndef SLIPWAY_API_BOARD_H
#define SLIPWAY_API_BOARD_H

#include <stdatomic.h>
#include <stdint.h>

#define BOARD_WORKERS 768
#define BOARD_REFUSED 256

struct board {
	atomic_int_least64_t requests[6]; /* by the first digit of the status */
	atomic_int_least64_t busy_ms;     /* time spent in requests */
	atomic_int_least64_t restarts;    /* workers that died */
	/* events with a wrong signature: time and number, by address */
	atomic_int_least64_t refused[BOARD_REFUSED];
	atomic_int schema_ok;            /* statements and tables agree */
	atomic_int ready[BOARD_WORKERS]; /* by place in the pool */
};

#endif
