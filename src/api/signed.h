/* SPDX-License-Identifier: ISC */
/* Whether a push event was signed with its project's secret. */
#ifndef SLIPWAY_API_SIGNED_H
#define SLIPWAY_API_SIGNED_H

#include "api/req.h"
#include "forge/hook.h"

/* Standard Webhooks: what follows is the key in base64. */
#define SIGNED_START "whsec_"
#define SIGNED_KEY 32     /* bytes of a key that is made here */
#define SIGNED_WINDOW 300 /* seconds that a signed time may be away */

/* ERR_UNAUTHENTICATED if the body was not: by words, time and work it cannot
 * be told whether there is such a project, or such a secret.
 * ERR_UNAVAILABLE if secrets cannot be opened here.  Who made the secret goes
 * into *made_by, if that is still somebody who may deploy. */
MUSTCHECK const struct err *signed_check(struct req *,
    const struct hook_envelope *, int64_t project_id, struct maybe *made_by);

#endif
