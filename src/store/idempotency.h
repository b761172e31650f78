/* SPDX-License-Identifier: ISC */
/* First answers to requests that carry an Idempotency-Key, kept for a day. */
#ifndef SLIPWAY_STORE_IDEMPOTENCY_H
#define SLIPWAY_STORE_IDEMPOTENCY_H

#include "db/db.h"

struct idempotency {
	int64_t user_id;
	const char *idempotency_key;
	const char *request_hash; /* in hex */
	int64_t deployment_id;
	const char *answer;
};

extern const struct stmt *const idempotency_stmts[];

/* Fills in deployment and answer of the user, key and hash given;
 * ERR_NOTFOUND if there is no answer younger than a day, ERR_INVALID if it
 * belongs to another request. */
MUSTCHECK const struct err *idempotency_find(struct db *, struct arena *,
    struct idempotency *);
/* Inside the transaction of the deployment. A DB_DUPLICATE means that the same
 * key was used meanwhile. */
MUSTCHECK const struct err *idempotency_save(struct db *,
    const struct idempotency *);

#endif
