/* SPDX-License-Identifier: ISC */
/* Push events: the secrets that sign them, and accepted deliveries. */
#ifndef SLIPWAY_STORE_HOOK_H
#define SLIPWAY_STORE_HOOK_H

#include "db/db.h"

/* The purpose for which the secret is sealed: id of the project. */
#define HOOK_PURPOSE "push events of project %lld"

struct hook_secret {
	int64_t project_id;
	struct blob secret;    /* sealed */
	struct maybe made_by;  /* not set = unknown */
	struct maybe deployer; /* the same, if that user may still deploy */
	struct when updated_at;
};

struct hook_delivery {
	int64_t project_id;
	const char *delivery_hash;    /* SHA-256 in hex */
	struct json_text deployments; /* array of their ids */
	struct when created_at;
};

/* For live projects only; ERR_NOTFOUND. */
MUSTCHECK const struct err *hook_secret_find(struct db *, struct arena *,
    int64_t project_id, struct hook_secret *out);
MUSTCHECK const struct err *hook_secret_put(struct db *,
    const struct hook_secret *);

MUSTCHECK const struct err *hook_delivery_find(struct db *, struct arena *,
    int64_t project_id, const char *delivery_hash, struct hook_delivery *out);
/* Inside the transaction that creates the deployments. A duplicate is
 * ERR_CONFLICT with sys DB_DUPLICATE. */
MUSTCHECK const struct err *hook_delivery_insert(struct db *,
    const struct hook_delivery *);
/* Deletes deliveries that are older than `days`, some hundreds per call; writes
 * nothing if there are none. */
MUSTCHECK const struct err *hook_tidy(struct db *, struct arena *,
    int64_t days);

#endif
