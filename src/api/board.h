/* SPDX-License-Identifier: ISC */
/* Counters and flags that master and workers share, on a page that the workers
 * inherit. */
#ifndef SLIPWAY_API_BOARD_H
#define SLIPWAY_API_BOARD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define BOARD_WORKERS 768
#define BOARD_REFUSED 256
#define BOARD_TEXT 256

/* One worker, indexed by its place in the pool. */
struct board_place {
	atomic_int ready;            /* it has started to serve */
	atomic_int_least64_t until;  /* deadline of its current request in
				      * monotonic ms; 0 = none */
	atomic_int pool;             /* an enum route_pool */
	atomic_int_least64_t waiter; /* user whose request waits for an event; 0
				      * = none */
	char request[BOARD_TEXT];    /* the current request; "" = none */
};

struct board {
	atomic_int_least64_t requests[6]; /* by the first digit of the status */
	atomic_int_least64_t busy_ms;     /* time spent serving requests */
	atomic_int_least64_t restarts;    /* workers that died and were
					   * replaced */
	/* events with a wrong signature: time and count, by address */
	atomic_int_least64_t refused[BOARD_REFUSED];
	atomic_int schema_ok;   /* whether the tables match the statements */
	atomic_int schema_look; /* whether a starting worker checks that */
	atomic_int waits_lock; /* 1 + place of the worker that holds the lock */
	atomic_int_least64_t gave_way; /* monotonic ms at which a request last
				        * gave way */
	struct board_place place[BOARD_WORKERS];
};

/* Called by the master after a worker ended and before one starts in its
 * place. */
void board_clear(struct board *, int place);
/* Called by the worker. Leaves out the query of `uri`: it may contain a
 * secret. */
void board_begin(struct board_place *, const char *method, const char *uri,
    const char *id, int64_t until);
void board_end(struct board_place *);

enum board_wait {
	BOARD_WAIT_YES,
	BOARD_WAIT_USER, /* the user has BOARD_WAITS_EACH waiting requests
			  * already */
	BOARD_WAIT_FULL, /* the pool needs its other workers */
};
#define BOARD_WAITS_EACH 2

/* Registers a request that may wait for an event; it occupies a worker. At
 * least one worker of a pool, and a quarter of them, stay free of such
 * requests, unless the pool has only one. `user` may be a negative id, which
 * counts apart from the positive one. After BOARD_WAIT_YES the caller must
 * call board_wait_end(). */
enum board_wait board_wait_begin(struct board *, struct board_place *,
    int64_t user);
void board_wait_end(struct board_place *);
/* Whether a waiting request must end because a connection finds no free worker.
 * Only one request is chosen at a time. `listen_fd` is the pool's socket; the
 * caller keeps *seen between calls, initially false. */
bool board_wait_over(struct board *, int listen_fd, bool *seen);

#endif
