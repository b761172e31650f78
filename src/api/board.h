/* SPDX-License-Identifier: ISC */
/* What master and workers share: a page of counters and flags that the
 * workers inherit. */
#ifndef SLIPWAY_API_BOARD_H
#define SLIPWAY_API_BOARD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define BOARD_WORKERS 768
#define BOARD_REFUSED 256
#define BOARD_TEXT 256

/* One worker, by its place in the pool. */
struct board_place {
	atomic_int ready;            /* it has begun to serve */
	atomic_int_least64_t until;  /* monotonic ms at which the request in
				      * its hands must be done; 0 = none */
	atomic_int pool;             /* an enum route_pool */
	atomic_int_least64_t waiter; /* user whose request waits for something
				      * to happen; 0 = none */
	char request[BOARD_TEXT];    /* which that is; "" = none */
};

struct board {
	atomic_int_least64_t requests[6]; /* by the first digit of the status */
	atomic_int_least64_t busy_ms;     /* time spent in requests */
	atomic_int_least64_t restarts;    /* workers that died */
	/* events with a wrong signature: time and number, by address */
	atomic_int_least64_t refused[BOARD_REFUSED];
	atomic_int schema_ok;  /* statements and tables agree */
	atomic_int waits_lock; /* 1 + place of the worker that holds it */
	atomic_int_least64_t gave_way; /* monotonic ms, when one last did */
	struct board_place place[BOARD_WORKERS];
};

/* By the master, when a worker ended and before one starts in this place. */
void board_clear(struct board *, int place);
/* By the worker.  The query is left out of `uri`: it may hold a secret. */
void board_begin(struct board_place *, const char *method, const char *uri,
    const char *id, int64_t until);
void board_end(struct board_place *);

enum board_wait {
	BOARD_WAIT_YES,
	BOARD_WAIT_USER, /* the user has BOARD_WAITS_EACH already */
	BOARD_WAIT_FULL, /* the pool needs its other workers */
};
#define BOARD_WAITS_EACH 2

/* A request that may wait for something to happen takes up a worker.  At least
 * one worker of a pool, and a quarter of them, stay free of such requests,
 * unless it has one only.  On BOARD_WAIT_YES, board_wait_end() must follow. */
enum board_wait board_wait_begin(struct board *, struct board_place *,
    int64_t user);
void board_wait_end(struct board_place *);
/* Whether a request that waits has to give its worker back, as a connection has
 * found no other worker; one at a time is chosen.  `listen_fd` is the pool's
 * socket, *seen the caller's, false at first. */
bool board_wait_over(struct board *, int listen_fd, bool *seen);

#endif
