/* SPDX-License-Identifier: ISC */
/* From the claim of a deployment to the start of its job. */
#ifndef SLIPWAY_DISPATCH_START_H
#define SLIPWAY_DISPATCH_START_H

#include "dispatch/task.h"
#include "queue/claim.h"

struct dispatch;

/* A claimed deployment becomes a task, or ends if it cannot start.  Like the
 * next function it returns false if this host is in trouble: the deployment is
 * back on the queue, and no other should be claimed for a while. */
bool start_claimed(struct dispatch *, const struct claim *);
/* Takes the next steps of a task that is being prepared. */
bool start_prepare(struct dispatch *, struct task *);
/* When that is. */
int64_t start_due(const struct task *, int64_t now);
/* The dispatcher ends: a task that is being prepared returns to the queue. */
void start_abandon(struct dispatch *, struct task *);
/* The monitor has started the job. */
void start_confirmed(struct dispatch *, struct task *, const struct wire *);
/* The monitor could not start the job. */
enum start_fate {
	START_ENDED,
	START_BUSY,     /* on the queue: its account is busy */
	START_RETURNED, /* on the queue: there is trouble on this host */
};
/* `why` is a sentence. */
enum start_fate start_rejected(struct dispatch *, struct task *,
    const struct wire *, const char **why);

#endif
