/* SPDX-License-Identifier: ISC */
/* Which deployment is live in an environment. */
#ifndef SLIPWAY_STORE_ENVIRONMENT_LIVE_H
#define SLIPWAY_STORE_ENVIRONMENT_LIVE_H

#include "db/db.h"

/* Inside the transaction in which the deployment succeeds: it is now live in
 * its environment, if it has one, and remembers what it replaced. */
MUSTCHECK const struct err *environment_live_set(struct db *,
    int64_t deployment_id);

#endif
