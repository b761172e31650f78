/* SPDX-License-Identifier: ISC */
/* Names of the variables of deployments. */
#ifndef SLIPWAY_STORE_ENV_NAME_H
#define SLIPWAY_STORE_ENV_NAME_H

#include <stdbool.h>

#define ENV_NAME_ERE "[A-Za-z_][A-Za-z0-9_]{0,127}"

/* What is wrong with a variable's name: its form, or that it controls the
 * shell, the loader, git or this service. NULL = it is valid. */
const char *env_name_fault(const char *name);
/* Whether a valid name steers a program that a step may run, such as
 * NODE_OPTIONS: only maintainers, who write the scripts, decide about it. */
bool env_name_steers(const char *name);

#endif
