/* SPDX-License-Identifier: ISC */
/* Counters and flags that master and workers share, on a page that the workers
 * inherit. */
#ifndef SLIPWAY_API_BOARD_H
#define SLIPWAY_API_BOARD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define BOARD_WORKERS 768
#define BOARD_REJECTED 256
#define BOARD_TEXT 256

/* clang-format off */
/* Upper bounds of ranges of the time that requests take: milliseconds, and
 * seconds as text. */
#define BOARD_BOUNDS(X)							\
	X(5, "0.005")							\
	X(10, "0.01")							\
	X(25, "0.025")							\
	X(50, "0.05")							\
	X(100, "0.1")							\
	X(250, "0.25")							\
	X(500, "0.5")							\
	X(1000, "1")							\
	X(2500, "2.5")							\
	X(5000, "5")							\
	X(10000, "10")
#define BOARD_BOUND(ms, seconds) + 1
#define BOARD_RANGES (1 BOARD_BOUNDS(BOARD_BOUND))
/* clang-format on */

/* Results of events of Git servers. */
enum board_hook {
	BOARD_HOOK_ACCEPTED, /* has deployments */
	BOARD_HOOK_IGNORED,  /* starts none */
	BOARD_HOOK_REJECTED, /* is invalid: a wrong signature, for example */
	BOARD_HOOK_FAILED,
	BOARD_HOOK__MAX
};

/* One worker, indexed by its place in the pool. */
struct board_place {
	atomic_int ready;            /* it has started to serve */
	atomic_int_least64_t until;  /* deadline of its current request in
				      * monotonic ms; 0 = none */
	atomic_int pool;             /* an enum route_pool */
	atomic_int_least64_t holder; /* user whose request takes long; 0 =
				      * none */
	char request[BOARD_TEXT];    /* the current request; "" = none */
};

struct board {
	atomic_int_least64_t requests[6]; /* by the first digit of the status */
	atomic_int_least64_t took[BOARD_RANGES]; /* by time */
	atomic_int_least64_t busy_ms; /* time spent serving requests */
	atomic_int_least64_t hooks[BOARD_HOOK__MAX];
	atomic_int_least64_t restarts; /* workers that died and were
					   * replaced */
	/* events with a wrong signature: time and count, by address */
	atomic_int_least64_t rejected[BOARD_REJECTED];
	atomic_int schema_ok;   /* whether the tables match the statements */
	atomic_int schema_look; /* whether a starting worker checks that */
	atomic_int long_lock; /* 1 + place of the worker that holds the lock */
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
/* Counts a request that was served. */
void board_count(struct board *, int status, int64_t ms);

enum board_long {
	BOARD_LONG_YES,
	BOARD_LONG_USER, /* the user has BOARD_LONG_EACH of them already */
	BOARD_LONG_FULL, /* the pool needs its other workers */
};
#define BOARD_LONG_EACH 2

/* Registers a request that takes long: a search, or one that queries the Git
 * server outside of its pool.  Half of the workers of a pool, or its only one,
 * serve such requests at a time, so that they do not stall the others.  `user`
 * may be a negative id, which counts apart from the positive one. After
 * BOARD_LONG_YES the caller must call board_long_end(). */
enum board_long board_long_begin(struct board *, struct board_place *,
    int64_t user);
void board_long_end(struct board_place *);

#endif
