/* SPDX-License-Identifier: ISC */
/* First responses to requests with an Idempotency-Key, stored for a day. */
#ifndef SLIPWAY_STORE_IDEMPOTENCY_H
#define SLIPWAY_STORE_IDEMPOTENCY_H

#include "db/db.h"

struct idempotency {
	int64_t user_id;
	const char *idempotency_key;
	const char *request;      /* identifies the request; not stored */
	const char *request_hash; /* its hash in hex */
	int64_t deployment_id;
	const char *answer;
};

/* Finds the stored response for that user and key; ERR_NOTFOUND if there is
 * none younger than a day. */
MUSTCHECK const struct err *idempotency_find(struct db *, struct arena *,
    const struct idempotency *, struct idempotency *out);
/* Inside the transaction of the deployment. DB_DUPLICATE means that a
 * concurrent request used the same key. */
MUSTCHECK const struct err *idempotency_save(struct db *,
    const struct idempotency *);
/* Deletes expired responses, some hundreds per call. Writes nothing if there
 * are none. */
MUSTCHECK const struct err *idempotency_tidy(struct db *, struct arena *);

#endif
