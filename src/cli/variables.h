/* SPDX-License-Identifier: ISC */
/* The environment variables of a deployment, from options, files and the
 * terminal. */
#ifndef SLIPWAY_CLI_VARIABLES_H
#define SLIPWAY_CLI_VARIABLES_H

#include "cli/slipway.h"

/* Collects the variables, lowest precedence first: --env-file, --env, --secret.
 * A secret of the project is rejected in --env, where other users could see it,
 * and asked for on the terminal if it is required and missing. */
MUSTCHECK const struct err *variables_read(struct client *, int64_t project,
    const struct variable_options *, struct map *out);

#endif
