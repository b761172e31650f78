/* SPDX-License-Identifier: ISC */
/*
 * New deployments. All of them are created here, so that a request, a push and
 * a command line pass the same checks.
 *
 * Errors in the input become faults in the context's list, with pointers to the
 * members of POST /api/deployments. An error value means that the check itself
 * failed.
 */
#ifndef SLIPWAY_DEPLOY_DEPLOY_H
#define SLIPWAY_DEPLOY_DEPLOY_H

#include "deploy/order.h"

/* Size of an arena that suffices to judge and create a deployment. */
#define DEPLOY_WORK ((size_t)8 << 20)

/* Checks the order, adds faults, and fills in the deployment as far as the
 * order is valid, in the arena. Members that have a fault already are not
 * checked again. Inside a transaction it locks the project and the pipeline.
 * ERR_CONFIG if a variable is secret and there is no key. */
MUSTCHECK const struct err *deploy_judge(struct deploy *,
    const struct deploy_order *, struct deployment *out);
/* Inside a transaction: checks the order and inserts the deployment with its
 * steps. `out` is the deployment as the API shows it. ERR_INVALID if
 * there are faults or the tip is missing, ERR_LOCKED if a user started it and a
 * lock prevents it. */
MUSTCHECK const struct err *deploy_create(struct deploy *,
    const struct deploy_order *, struct deployment *out);
/* Wakes the runner. Call it after the commit. */
void deploy_wake(const struct deploy *);

#endif
