/* SPDX-License-Identifier: ISC */
/* Converts variables from requests into the columns of deployments. */
#ifndef SLIPWAY_DEPLOY_VARIABLES_H
#define SLIPWAY_DEPLOY_VARIABLES_H

#include "deploy/order.h"
#include "store/project.h"

/* Which of the roles deployer and maintainer a deployment records for a user who
 * sets its variables. */
const char *variables_role(enum role);
/* Why a user with that role may not set variables outside of the project's
 * presets; NULL if the user may. */
const char *variables_rejection(const struct project *, enum role);
/* Finds the first variable of an existing deployment that a deployer may not set
 * now and that does not have the value of the base (struct env_var): `out` says
 * which and why, after "sets"; NULL if there is none. If the base has it as a
 * secret, the deployment gets that value instead; then its env_vars and
 * secret_vars become those to repeat it with. Otherwise they do not change. */
MUSTCHECK const struct err *variables_repeat(const struct deploy *,
    const struct project *, const struct list *base, struct deployment *,
    const char **out);

/* Checks the variables against the project's presets, adds those of the base
 * (struct env_var) that are not set, and fills in the deployment's env_vars and
 * secret_vars, in the arena. Adds faults below /envVars. ERR_CONFIG if a variable is secret and there is no key. */
MUSTCHECK const struct err *variables_make(struct deploy *,
    const struct project *, const struct list *base,
    const struct deploy_order *, struct deployment *out);

#endif
