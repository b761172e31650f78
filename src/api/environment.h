/* SPDX-License-Identifier: ISC */
/* Variables between what is asked for and the rows of deployments. */
#ifndef SLIPWAY_API_ENVIRONMENT_H
#define SLIPWAY_API_ENVIRONMENT_H

#include "api/deploy.h"
#include "store/project.h"

/* Checks the variables against the project's presets and fills in the
 * deployment's env_vars and secret_vars, in the arena.  Faults are added to
 * the request's, below /envVars.  ERR_UNAVAILABLE if there is no key to seal
 * with. */
MUSTCHECK const struct err *environment_make(struct req *, struct arena *,
    const struct project *, const struct deploy *, struct deployment *out);

#endif
