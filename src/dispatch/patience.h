/* SPDX-License-Identifier: ISC */
/* How long deployments wait for a Git server that does not respond. */
#ifndef SLIPWAY_DISPATCH_PATIENCE_H
#define SLIPWAY_DISPATCH_PATIENCE_H

#include <stdbool.h>

#include "queue/claim.h"

struct dispatch;
struct task;

/* Seconds for which a deployment may go on waiting. */
int64_t patience_left(const struct settings_runner *, const struct claim *);
/* Takes over what the claim says of earlier tries. */
void patience_begin(const struct dispatch *, struct task *,
    const struct claim *);
/* Returns the deployment to the queue, to be claimed again after a pause: that
 * which the server demands (in seconds, 0 = none), or one that grows.  False if
 * the queue may still hold it for its owner. */
bool patience_wait(struct dispatch *, const struct task *, int64_t demanded,
    const char *detail);

#endif
