/* SPDX-License-Identifier: ISC */
/*
 * A part of the dispatcher: what it does, and when.
 *
 * The loop knows parts by this table alone.  A part has its own state, which
 * the loop passes to its functions.  Parts do not call each other: they share
 * the context, and announce events in it.
 */
#ifndef SLIPWAY_DISPATCH_PART_H
#define SLIPWAY_DISPATCH_PART_H

#include <sys/types.h>

#include <stdbool.h>
#include <stdint.h>

#include "spool/wire.h"

/* clang-format off */
/* All parts, in the order in which they work in each turn of the loop. Catch-ups
 * compare with the last report of this runner, so they come before presence. */
#define PARTS(X)							\
	X(recovery)							\
	X(tasks)							\
	X(uploads)							\
	X(reviews)							\
	X(catchups)							\
	X(presence)							\
	X(probes)							\
	X(claims)							\
	X(leases)							\
	X(house)							\
	X(wipes)							\
	X(facts)							\
	X(statuses)							\
	X(notices)							\
	X(prompts)							\
	X(mails)							\
	X(rechecks)							\
	X(schedules)
/* clang-format on */

struct dispatch;

enum part_flag {
	/* It also works while the database cannot be queried, and asks
   * database_is_ready() itself. */
	PART_OFFLINE = 1 << 0,
};

/*
 * Times are monotonic milliseconds.  `state` is the part's own memory, `size`
 * zeroed bytes at the start; it is NULL if size is 0.  The functions after
 * `next` may be NULL.
 */
struct part {
	size_t size;
	unsigned flags;
	/* Does the work that is due. */
	void (*work)(struct dispatch *, void *state, int64_t now);
	/* When something is due next, INT64_MAX = nothing. */
	int64_t (
	    *next)(const struct dispatch *, const void *state, int64_t now);
	/* Handles events, a set of enum event. */
	void (*events)(void *state, unsigned events);
	/* A message of the monitor. */
	void (*message)(struct dispatch *, void *state, const struct wire *);
	/* A child process of the dispatcher has ended. */
	void (*child)(struct dispatch *, void *state, pid_t, int status);
	/* Whether it has nothing more to do; tasks aside. */
	bool (
	    *is_idle)(const struct dispatch *, const void *state, int64_t now);
	/* The dispatcher ends. */
	void (*close)(struct dispatch *, void *state);
};

#define X(name) extern const struct part name##_part;
PARTS(X)
#undef X

#endif
