/* SPDX-License-Identifier: ISC */
/* First answers to requests that carry an Idempotency-Key, kept for a day. */
#ifndef SLIPWAY_STORE_IDEMPOTENCY_H
#define SLIPWAY_STORE_IDEMPOTENCY_H

#include "db/db.h"

struct idempotency {
	int64_t user_id;
	const char *idempotency_key;
	const char *request;      /* what is asked for; not stored */
	const char *request_hash; /* in hex, of what was asked for */
	int64_t deployment_id;
	const char *answer;
};

/* What was answered under that user and key; ERR_NOTFOUND if there is no answer
 * younger than a day. */
MUSTCHECK const struct err *idempotency_find(struct db *, struct arena *,
    const struct idempotency *, struct idempotency *out);
/* Inside the transaction of the deployment. A DB_DUPLICATE means that the same
 * key was used meanwhile. */
MUSTCHECK const struct err *idempotency_save(struct db *,
    const struct idempotency *);
/* Removes what is past its day, some hundreds a call.  Writes nothing where there
 * is none. */
MUSTCHECK const struct err *idempotency_tidy(struct db *, struct arena *);

#endif
