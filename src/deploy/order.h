/* SPDX-License-Identifier: ISC */
/* The order to create a deployment: from a request, a push, a schedule or a
 * command line. */
#ifndef SLIPWAY_DEPLOY_ORDER_H
#define SLIPWAY_DEPLOY_ORDER_H

#include "deploy/context.h"
#include "queue/deployment.h"
#include "store/user.h"

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
	bool is_confirmed; /* the repository has the commit on the branch or
			    * tag */
	bool is_elsewhere; /* it has it, but not there */
	bool is_read;      /* the message is that of the repository */
	struct maybe created_by;
	struct maybe read_by; /* with whose access the repository is read, if
			       * not with that of created_by */
	enum role role;       /* of the user who set the variables */
	/* Filled in if the environment requires approval and the order names no
	 * commit, which is then an error without faults: the caller finds the
	 * commit and orders again. NULL = that is a fault. */
	struct deploy_tip *tip;
};

#endif
