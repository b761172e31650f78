/* SPDX-License-Identifier: ISC */
/* Requests to repeat deployments, and which one a rollback repeats. */
#ifndef SLIPWAY_QUEUE_REPEAT_H
#define SLIPWAY_QUEUE_REPEAT_H

#include "db/db.h"

#define REPEAT_REASON_MAX 500

/* The body of a rollback. */
struct rollback_request {
	struct maybe deployment_id; /* not set = the one before the live one */
	const char *reason;
};
/* The body of a promotion. */
struct promotion_request {
	int64_t environment_id;
	struct map env_vars;
};
/* The body of a cancellation. */
struct cancel_request {
	const char *then; /* "rollback"; NULL = nothing */
};
extern const struct shape rollback_request_shape;
extern const struct shape promotion_request_shape;
extern const struct shape cancel_request_shape;

/* The deployments that a rollback of an environment can repeat; 0 = none. */
struct repeat_targets {
	int64_t live;    /* the deployment that is live */
	int64_t before;  /* what was live before it */
	int64_t pending; /* a rollback that has not started */
	int64_t running; /* a rollback that runs */
};

/* Reads them; ERR_NOTFOUND if the environment is deleted. A rollback counts as
 * the deployment that it repeats. */
MUSTCHECK const struct err *repeat_targets(struct db *, struct arena *,
    int64_t environment_id, struct repeat_targets *out);

#endif
