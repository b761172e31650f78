/* SPDX-License-Identifier: ISC */
/*
 * Deployments that are held, and whose job never began.
 *
 * Functions that return a bool return false if the queue may still hold the
 * deployment for its owner; it is in doubt then, until the queue is read.
 */
#ifndef SLIPWAY_DISPATCH_UNSTARTED_H
#define SLIPWAY_DISPATCH_UNSTARTED_H

#include <stdbool.h>

#include "queue/queue.h"

struct dispatch;

/* Returns it to the queue. */
bool unstarted_release(struct dispatch *, int64_t id, int64_t epoch);
/* The same, to be claimed again after a pause. */
bool unstarted_wait(struct dispatch *, const struct queue_wait *);
/* Ends it. */
bool unstarted_end(struct dispatch *, const struct queue_end *);
/* Gives it back because of trouble on this host, and counts that: after too many
 * times it ends. `detail` is the reason in both cases. */
enum unstarted_where {
	UNSTARTED_ANYWHERE,
	UNSTARTED_ELSEWHERE, /* it ends if no other runner may run it */
};
enum unstarted_how {
	UNSTARTED_RETURNED,
	UNSTARTED_ENDED,
};
enum unstarted_how unstarted_give_back(struct dispatch *,
    const struct queue_end *, enum unstarted_where);

#endif
