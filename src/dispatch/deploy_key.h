/* SPDX-License-Identifier: ISC */
/* The private half of a project's deploy key. */
#ifndef SLIPWAY_DISPATCH_DEPLOY_KEY_H
#define SLIPWAY_DISPATCH_DEPLOY_KEY_H

#include <stdint.h>

#include "core/arena.h"

struct settings;

/* Decrypts it, into the arena.  ERR_CONFIG says to the project's maintainers why
 * it cannot be decrypted, and what to do. */
MUSTCHECK const struct err *deploy_key_open(const struct settings *,
    struct arena *, int64_t project_id, const char *sealed, const char **out);

#endif
