/* SPDX-License-Identifier: ISC */
/* How a deployment ended. */
#ifndef SLIPWAY_DISPATCH_OUTCOME_H
#define SLIPWAY_DISPATCH_OUTCOME_H

#include "dispatch/result.h"

/* The job's own account, or what is known without one.  Strings in the arena. */
void outcome_read(struct arena *, const struct task *, struct outcome *out);
/* Stores what the job saw of its workspace. */
MUSTCHECK const struct err *outcome_workspace(const struct dispatch *,
    const struct task *, const struct workspace_seen *);

#endif
