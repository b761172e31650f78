/* SPDX-License-Identifier: ISC */
/*
 * Approval: an environment can require that another user approves each
 * deployment before it runs. Approval is for one commit and one copy of the
 * steps, so both are fixed when the deployment is created.
 *
 * The rules of the environment at the time of its creation determine whether a
 * deployment needs approval, and those at the time of the decision, who may
 * approve it. A change of the rules releases nothing, and a decision stays valid
 * if the approver is removed.
 *
 * A rollback needs no approval: it repeats what ran in the environment before.
 */
#ifndef SLIPWAY_DEPLOY_APPROVAL_H
#define SLIPWAY_DEPLOY_APPROVAL_H

#include "deploy/order.h"
#include "store/environment.h"

struct approval_vote {
	int64_t deployment_id;
	const struct principal *who;
	enum role role;       /* of the user */
	const char *approval; /* APPROVAL_GRANTED or APPROVAL_DENIED */
	const char *comment;
};

/* Marks a new deployment if the environment requires approval; then a text that
 * was not read from the repository is not shown. If its commit is not fixed,
 * fills in the tip of the order, or adds a fault at /commitHash if there is none
 * or a part of a hash was sent, or if nothing confirms that the commit is on its
 * branch. */
void approval_judge(struct deploy *, const struct environment *,
    const struct deploy_order *, struct deployment *);
/* The same for a copy of a deployment; ERR_CONFLICT if its commit is not
 * fixed. */
MUSTCHECK const struct err *approval_repeat(const struct environment *,
    struct deployment *);
/* Checks the approvers of an environment that a request describes: each is an
 * active user who may deploy, or is listed already. For a guest (0 = the caller
 * is none), users who share no project with the guest are unknown. Adds faults at
 * /approvers. */
MUSTCHECK const struct err *approval_judge_users(struct deploy *,
    const struct environment *, int64_t guest);
/* Inside a transaction: approves or denies. ERR_FORBIDDEN if the user started
 * the deployment or is no approver of its environment, ERR_CONFLICT if it does
 * not wait for approval, if its environment was deleted, or if that no longer
 * accepts the branch of what the user approves. */
MUSTCHECK const struct err *approval_decide(struct deploy *,
    const struct approval_vote *);

#endif
