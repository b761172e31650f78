/* SPDX-License-Identifier: ISC */
/* What a lock does to new deployments: those that a user starts are rejected,
 * and those that pushes and schedules start wait. */
#ifndef SLIPWAY_DEPLOY_LOCKED_H
#define SLIPWAY_DEPLOY_LOCKED_H

#include "deploy/context.h"
#include "queue/deployment.h"

/* ERR_LOCKED, with the user who set the lock and why, if a lock keeps a user
 * from starting a deployment there; environment 0 = none. */
MUSTCHECK const struct err *locked_check(struct deploy *, int64_t project_id,
    int64_t environment_id);
/* Inside the transaction that created a deployment which no user started: if it
 * has to wait for a lock, cancels those of the same branch and pipeline that it
 * replaces. `before` is the commit that its push replaced, or NULL. */
MUSTCHECK const struct err *locked_wait(struct deploy *,
    const struct deployment *, const char *before);

#endif
