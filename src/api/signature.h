/* SPDX-License-Identifier: ISC */
/* Whether a push event was signed with its project's secret. */
#ifndef SLIPWAY_API_SIGNATURE_H
#define SLIPWAY_API_SIGNATURE_H

#include "api/req.h"
#include "forge/hook.h"

/* Standard Webhooks: what follows is the key in base64. */
#define SIGNATURE_START "whsec_"
#define SIGNATURE_KEY 32     /* bytes of a key that is made here */
#define SIGNATURE_WINDOW 300 /* seconds that a signed time may be away */

/* ERR_UNAUTHENTICATED if the body was not: by words, time and work it cannot
 * be told whether there is such a project, or such a secret.
 * ERR_UNAVAILABLE if secrets cannot be opened here.  Who made the secret goes
 * into *made_by, if that is still somebody who may deploy. */
MUSTCHECK const struct err *signature_check(struct req *,
    const struct hook_envelope *, int64_t project_id, struct maybe *made_by);

#endif
