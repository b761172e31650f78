/* SPDX-License-Identifier: ISC */
/* The rules of deploying, as a request applies them. */
#ifndef SLIPWAY_API_RULES_H
#define SLIPWAY_API_RULES_H

#include "deploy/context.h"
#include "web/req.h"

/* The context of a request.  Results are in the arena, and errors in the input
 * are faults of the request. */
struct deploy rules_context(struct req *, struct arena *);

#endif
