/* SPDX-License-Identifier: ISC */
/* Links to this service, for messages to others. */
#ifndef SLIPWAY_DISPATCH_LINK_H
#define SLIPWAY_DISPATCH_LINK_H

#include <stdint.h>

#include "core/settings.h"

/* Where a person can read more about a deployment; NULL if this service's
 * address is not set. */
const char *link_deployment(const struct settings *, struct arena *,
    int64_t id);

#endif
