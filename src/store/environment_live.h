/* SPDX-License-Identifier: ISC */
/* Which deployment is live in an environment. */
#ifndef SLIPWAY_STORE_ENVIRONMENT_LIVE_H
#define SLIPWAY_STORE_ENVIRONMENT_LIVE_H

#include "store/env.h"

/* SQL for the transaction in which a deployment succeeds: it is now live in its
 * environment, if it has one and is no dry run, and records the deployment that
 * it replaced. Takes its id, twice. */
#define ENVIRONMENT_LIVE_SET                                                   \
	"UPDATE deployment d JOIN environment e ON e.id = d.environment_id"    \
	" SET d.replaced = e.live_deployment WHERE d.id = ?"                   \
	" AND COALESCE(JSON_VALUE(d.env_vars, '$." ENV_DRY_RUN "'), '')"       \
	" <> '" ENV_DRY_RUN_YES "';"                                           \
	" IF ROW_COUNT() > 0 THEN UPDATE environment e"                        \
	" JOIN deployment d ON d.environment_id = e.id"                        \
	" SET e.live_deployment = d.id WHERE d.id = ?; END IF"

#endif
