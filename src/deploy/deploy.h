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

#include "deploy/context.h"
#include "store/deployment.h"
#include "store/user.h"

/* Size of an arena that suffices to judge and create a deployment. */
#define DEPLOY_WORK ((size_t)8 << 20)

/* The commit that approval is given for, if the order names none: that of the
 * tag, else the newest of the branch (NULL = of the repository's HEAD). */
struct deploy_tip {
	bool is_missing;
	const char *branch;
	const char *tag;
};

/* What becomes of the deployment of a push if its branch has moved when it
 * starts. */
enum deploy_moved {
	DEPLOY_MOVED_CANCEL,
	DEPLOY_MOVED_FOLLOW, /* needs a checkout, else it is ignored */
	DEPLOY_MOVED_IGNORE,
};

struct deploy_order {
	const struct deployment_request *sent;
	const struct list *vars; /* struct env_var; NULL = those of `sent` */
	const char *trigger;
	const char *before;      /* the commit that a push replaced, or NULL */
	const char *trigger_key; /* the trigger of a push, or NULL */
	enum deploy_moved moved;
	struct maybe created_by;
	enum role role; /* of the user who set the variables */
	/* Filled in if the environment requires approval and the order names no
	 * commit, which is then an error without faults: the caller finds the
	 * commit and orders again. NULL = that is a fault. */
	struct deploy_tip *tip;
};

/* Checks the order, adds faults, and fills in the deployment as far as the
 * order is valid, in the arena. Members that have a fault already are not
 * checked again. Inside a transaction it locks the project and the pipeline.
 * ERR_UNAVAILABLE if a variable is secret and there is no key. */
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
