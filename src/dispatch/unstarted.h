/* SPDX-License-Identifier: ISC */
/*
 * Deployments that are held, and whose job never began.
 *
 * Both functions return false if the queue may still hold the deployment for
 * its owner; it is in doubt then, until the queue is read.
 */
#ifndef SLIPWAY_DISPATCH_UNSTARTED_H
#define SLIPWAY_DISPATCH_UNSTARTED_H

#include <stdbool.h>

#include "store/queue.h"

struct dispatch;

/* Returns it to the queue. */
bool unstarted_release(struct dispatch *, int64_t id, int64_t epoch);
/* Ends it. */
bool unstarted_end(struct dispatch *, const struct queue_end *);

#endif
