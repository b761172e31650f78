/* SPDX-License-Identifier: ISC */
/* Checks that a push event is signed with its project's secret. */
#ifndef SLIPWAY_API_SIGNATURE_H
#define SLIPWAY_API_SIGNATURE_H

#include "forge/hook.h"
#include "store/hook.h"
#include "web/req.h"

#define SIGNATURE_WINDOW 300 /* maximum distance of a signed time in seconds */

/* ERR_UNAUTHENTICATED if the signature is wrong. Text, time and work do not
 * reveal whether the project or a secret exists. ERR_CONFIG if secrets
 * cannot be decrypted. `found` says who created the secret. */
MUSTCHECK const struct err *signature_check(struct req *,
    const struct hook_envelope *, int64_t project_id,
    struct hook_secret *found);

#endif
