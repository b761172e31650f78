/* SPDX-License-Identifier: ISC */
/* What master and workers share: a page of counters and flags that the
 * workers inherit. */
#ifndef SLIPWAY_API_BOARD_H
#define SLIPWAY_API_BOARD_H

#include <stdatomic.h>
#include <stdint.h>

#define BOARD_WORKERS 768
#define BOARD_REFUSED 256
#define BOARD_TEXT 256

/* One worker, by its place in the pool. */
struct board_place {
	atomic_int ready;           /* it has begun to serve */
	atomic_int_least64_t until; /* monotonic ms at which the request in
				      * its hands must be done; 0 = none */
	char request[BOARD_TEXT];   /* which that is; "" = none */
};

struct board {
	atomic_int_least64_t requests[6]; /* by the first digit of the status */
	atomic_int_least64_t busy_ms;     /* time spent in requests */
	atomic_int_least64_t restarts;    /* workers that died */
	/* events with a wrong signature: time and number, by address */
	atomic_int_least64_t refused[BOARD_REFUSED];
	atomic_int schema_ok; /* statements and tables agree */
	struct board_place place[BOARD_WORKERS];
};

/* By the master, before a worker starts in this place. */
void board_clear(struct board_place *);
/* By the worker.  The query is left out of `uri`: it may hold a secret. */
void board_begin(struct board_place *, const char *method, const char *uri,
    const char *id, int64_t until);
void board_end(struct board_place *);

#endif
