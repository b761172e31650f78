/* SPDX-License-Identifier: ISC */
/* envVars between JSON and the rows of deployments. */
#ifndef SLIPWAY_API_ENVIRONMENT_H
#define SLIPWAY_API_ENVIRONMENT_H

#include "api/req.h"
#include "store/deployment.h"
#include "store/project.h"

/* Checks an object of variables against the project's presets and fills in the
 * deployment's env_vars and secret_vars, in the arena.  Faults are added to
 * the request's, below /envVars.  ERR_UNAVAILABLE if there is no key to seal
 * with. */
MUSTCHECK const struct err *environment_make(struct req *, struct arena *,
    const struct project *, struct json_text vars, struct deployment *out);

#endif
