/* SPDX-License-Identifier: ISC */
/* Idempotency-Key: a repeated request returns the first response. */
#ifndef SLIPWAY_WEB_REPLAY_H
#define SLIPWAY_WEB_REPLAY_H

#include "store/idempotency.h"
#include "web/req.h"

/* Parses the header, quoted or bare, and identifies the request. Without the
 * header the key stays NULL. ERR_BAD_REQUEST if it is malformed. */
MUSTCHECK const struct err *replay_init(struct req *, struct idempotency *out);
/* Responds with the stored response, if there is one; sets `found`. ERR_INVALID
 * if the key belongs to another request. */
MUSTCHECK const struct err *replay_find(struct req *, struct idempotency *,
    bool *found);
/* Stores the current response of the request; inside the transaction. */
MUSTCHECK const struct err *replay_save(struct req *, struct idempotency *,
    int64_t deployment_id);

#endif
