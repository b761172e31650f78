/* SPDX-License-Identifier: ISC */
/* New deployments, whoever asks for them. */
#ifndef SLIPWAY_API_DEPLOY_H
#define SLIPWAY_API_DEPLOY_H

#include "api/req.h"
#include "store/deployment.h"

/* For an arena that one is judged and made in. */
#define DEPLOY_WORK ((size_t)5 << 20)

struct deploy {
	const struct deployment_request *sent;
	const struct list *vars; /* struct env_var; NULL = those sent */
	const char *trigger;
	struct maybe created_by;
};

/* The deployment that is asked for, as far as it can be had, in the arena; what
 * is wrong is added to the request's faults.  What could not be read is not
 * judged.  In a transaction project and pipeline are held. */
MUSTCHECK const struct err *deploy_judge(struct req *, struct arena *,
    const struct deploy *, struct deployment *out);
/* After the commit: there is something to do. */
void deploy_wake(const struct req *);

#endif
