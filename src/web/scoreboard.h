/* SPDX-License-Identifier: ISC */
/* Counters and flags that master and workers share, on a page that the workers
 * inherit. */
#ifndef SLIPWAY_WEB_SCOREBOARD_H
#define SLIPWAY_WEB_SCOREBOARD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "store/writable.h"

#define SCOREBOARD_WORKERS 768
#define SCOREBOARD_REJECTED 256
#define SCOREBOARD_TEXT 256

/* clang-format off */
/* Upper bounds of ranges of the time that requests take: milliseconds, and
 * seconds as text. */
#define SCOREBOARD_BOUNDS(X)							\
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
#define SCOREBOARD_BOUND(ms, seconds) + 1
#define SCOREBOARD_RANGES (1 SCOREBOARD_BOUNDS(SCOREBOARD_BOUND))
/* clang-format on */

/* Results of events of Git servers. */
enum scoreboard_hook {
	SCOREBOARD_HOOK_ACCEPTED, /* has deployments */
	SCOREBOARD_HOOK_IGNORED,  /* starts none */
	SCOREBOARD_HOOK_REJECTED, /* is invalid: a wrong signature, for example */
	SCOREBOARD_HOOK_FAILED,
	SCOREBOARD_HOOK__MAX
};

/* One worker, indexed by its place in the pool. */
struct scoreboard_place {
	atomic_int ready;           /* it has started to serve */
	atomic_int_least64_t until; /* deadline of its current request in
				      * monotonic ms; 0 = none */
	atomic_int pool;            /* an enum route_pool */
	atomic_int_least64_t
	    holder; /* whose request takes long, and its kind; 0 = none */
	char request[SCOREBOARD_TEXT]; /* the current request; "" = none */
};

struct scoreboard {
	atomic_int_least64_t requests[6]; /* by the first digit of the status */
	atomic_int_least64_t took[SCOREBOARD_RANGES]; /* by time */
	atomic_int_least64_t busy_ms; /* time spent serving requests */
	atomic_int_least64_t hooks[SCOREBOARD_HOOK__MAX];
	atomic_int_least64_t restarts; /* workers that died and were
					   * replaced */
	/* events with a wrong signature: time and count, by address */
	atomic_int_least64_t rejected[SCOREBOARD_REJECTED];
	struct writable writable;
	atomic_int schema_ok;   /* whether the tables match the statements */
	atomic_int schema_look; /* whether a starting worker checks that */
	atomic_int long_lock; /* 1 + place of the worker that holds the lock */
	struct scoreboard_place place[SCOREBOARD_WORKERS];
};

/* Called by the master after a worker ended and before one starts in its
 * place. */
void scoreboard_clear(struct scoreboard *, int place);
/* Called by the worker. Leaves out the query of `uri`: it may contain a
 * secret. */
void scoreboard_begin(struct scoreboard_place *, const char *method,
    const char *uri, const char *id, int64_t until);
void scoreboard_end(struct scoreboard_place *);
/* Counts a request that was served. */
void scoreboard_count(struct scoreboard *, int status, int64_t ms);

enum scoreboard_long {
	SCOREBOARD_LONG_YES,
	SCOREBOARD_LONG_USER, /* the user has SCOREBOARD_LONG_EACH of them already */
	SCOREBOARD_LONG_FULL, /* the pool needs its other workers */
};
#define SCOREBOARD_LONG_EACH 2

/* What takes long; a user's requests of each kind are counted apart. */
enum scoreboard_kind {
	SCOREBOARD_GIT, /* queries the Git server outside of its pool */
	SCOREBOARD_SEARCH,
	SCOREBOARD_DOWNLOAD,
	SCOREBOARD_KIND__MAX
};

/* Registers a request that takes long.  Half of the workers of a pool, or its
 * only one, serve such requests at a time, so that they do not stall the
 * others.  After SCOREBOARD_LONG_YES it counts until scoreboard_long_end(), or
 * the end of the request. */
enum scoreboard_long scoreboard_long_begin(struct scoreboard *,
    struct scoreboard_place *, enum scoreboard_kind, int64_t user);
void scoreboard_long_end(struct scoreboard_place *);

#endif
