/* SPDX-License-Identifier: ISC */
/* Signatures of webhooks according to Standard Webhooks 1.0.0, in both
 * directions: push events that arrive, messages of notifiers that leave. */
#ifndef SLIPWAY_CRYPTO_WEBHOOK_H
#define SLIPWAY_CRYPTO_WEBHOOK_H

#include <stdbool.h>

#include "core/arena.h"
#include "core/field.h"

/* What is signed. */
struct webhook {
	const char *id;
	int64_t at; /* seconds since 1970 */
	struct blob body;
};

/* Returns a new secret: "whsec_", then 256 random bits in base64.  Git servers
 * use its text as it is; receivers of Standard Webhooks the key in it. */
const char *webhook_secret(struct arena *);
/* Sets the signature, "v1,BASE64"; false if the secret is malformed. */
MUSTCHECK bool webhook_sign(struct arena *, const char *secret,
    const struct webhook *, const char **out);

#endif
