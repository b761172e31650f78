/* SPDX-License-Identifier: ISC */
/*
 * Deployments that repeat an earlier one, with its commit and its copy of the
 * steps: a retry in the same place, a rollback to what was live before, and a
 * promotion to another environment.
 *
 * A rollback runs before anything else that waits in its project, also while a
 * lock applies, and needs no approval: what it repeats has run there before.
 */
#ifndef SLIPWAY_DEPLOY_REPEAT_H
#define SLIPWAY_DEPLOY_REPEAT_H

#include "deploy/order.h"
#include "queue/repeat.h"

/* The user who repeats a deployment. */
struct repeat_by {
	int64_t user_id;
	enum role role;
};

/* All of these run inside a transaction, lock the project, and insert a pending
 * copy; `out` is the new deployment as the API shows it. ERR_NOTFOUND if the
 * object with the id is unknown, ERR_CONFLICT if the project or environment was
 * deleted, ERR_FORBIDDEN if the deployment sets variables outside of the presets
 * that this user may not set and no maintainer set. */

/* Also ERR_CONFLICT if the environment no longer accepts the branch or tag, or if
 * the deployment has none although the project has environments, and
 * ERR_LOCKED. The copy waits for approval if the environment requires it. */
MUSTCHECK const struct err *repeat_retry(struct deploy *, int64_t id,
    const struct repeat_by *, struct deployment *out);
/* Repeats a deployment that succeeded in the environment: the given one, or that
 * before the live one. Also ERR_CONFLICT if there is none, if a rollback of the
 * environment is pending, or if one is running and the request names no
 * deployment: what will be live is not known yet. */
MUSTCHECK const struct err *repeat_rollback(struct deploy *,
    int64_t environment_id, const struct rollback_request *,
    const struct repeat_by *, struct deployment *out);
/* After the cancellation of a running deployment in the same transaction: repeats
 * the deployment that is live in its environment. */
MUSTCHECK const struct err *repeat_undo(struct deploy *, int64_t id,
    const struct repeat_by *, struct deployment *out);
/* Checks a promotion, adds faults, and fills in the new deployment. */
MUSTCHECK const struct err *repeat_promotion_judge(struct deploy *, int64_t id,
    const struct promotion_request *, const struct repeat_by *,
    struct deployment *out);
/* Deploys to another environment of the project, with its variables. Also
 * ERR_INVALID with faults, ERR_CONFLICT if the deployment has not succeeded, and
 * ERR_LOCKED. The copy waits for approval if the environment requires it. */
MUSTCHECK const struct err *repeat_promotion(struct deploy *, int64_t id,
    const struct promotion_request *, const struct repeat_by *,
    struct deployment *out);

#endif
