/* SPDX-License-Identifier: ISC */
/* Variables between what is asked for and the rows of deployments. */
#ifndef SLIPWAY_DEPLOY_VARIABLES_H
#define SLIPWAY_DEPLOY_VARIABLES_H

#include "deploy/deploy.h"
#include "store/project.h"

/* Checks the variables against the project's presets and fills in the
 * deployment's env_vars and secret_vars, in the arena.  Adds faults below
 * /envVars.  ERR_UNAVAILABLE if a variable is secret and there is no key. */
MUSTCHECK const struct err *variables_make(struct deploy *,
    const struct project *, const struct deploy_order *,
    struct deployment *out);

#endif
