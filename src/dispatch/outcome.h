/* SPDX-License-Identifier: ISC */
/* How a deployment ended. */
#ifndef SLIPWAY_DISPATCH_OUTCOME_H
#define SLIPWAY_DISPATCH_OUTCOME_H

#include "dispatch/result.h"

/* The job's own result, or what is known without one.  Strings in the arena. */
void outcome_read(struct arena *, const struct task *, struct outcome *out);
/* Stores the state of the workspace that the job reported. */
MUSTCHECK const struct err *outcome_workspace(const struct dispatch *,
    const struct task *, const struct workspace_seen *);

#endif
