/* SPDX-License-Identifier: ISC */
/* Idempotency-Key: the same request sent again gets its first answer. */
#ifndef SLIPWAY_API_REPLAY_H
#define SLIPWAY_API_REPLAY_H

#include "api/req.h"
#include "store/idempotency.h"

/* Reads the header, quoted or bare, and what identifies the request; without
 * it the key stays NULL. ERR_BAD_REQUEST if it is malformed. */
MUSTCHECK const struct err *replay_init(struct req *, struct idempotency *out);
/* The first answer, if there is one, in place of the request's; `found` tells.
 * ERR_INVALID if the key belongs to another request. */
MUSTCHECK const struct err *replay_find(struct req *, struct idempotency *,
    bool *found);
/* Keeps the answer that stands in the request; inside the transaction. */
MUSTCHECK const struct err *replay_save(struct req *, struct idempotency *,
    int64_t deployment_id);

#endif
