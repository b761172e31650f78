/* SPDX-License-Identifier: ISC */
/* Push events: the secret that signs a project's, and deliveries taken. */
#ifndef SLIPWAY_STORE_HOOK_H
#define SLIPWAY_STORE_HOOK_H

#include "db/db.h"

/* What the secret is sealed for: the number of the project. */
#define HOOK_PURPOSE "push events of project %lld"
#define HOOK_DELIVERY_DAYS 90 /* that a delivery is remembered */

struct hook_secret {
	int64_t project_id;
	struct blob secret;   /* sealed */
	struct maybe made_by; /* who may deploy still, as read */
	struct when updated_at;
};

struct hook_delivery {
	int64_t project_id;
	const char *delivery_hash;    /* SHA-256 in hex */
	struct json_text deployments; /* array of their numbers */
	struct when created_at;
};

/* Of live projects; ERR_NOTFOUND. */
MUSTCHECK const struct err *hook_secret_find(struct db *, struct arena *,
    int64_t project_id, struct hook_secret *out);
MUSTCHECK const struct err *hook_secret_put(struct db *,
    const struct hook_secret *);

MUSTCHECK const struct err *hook_delivery_find(struct db *, struct arena *,
    int64_t project_id, const char *delivery_hash, struct hook_delivery *out);
/* Inside the transaction that makes the deployments; a duplicate is
 * ERR_CONFLICT with sys DB_DUPLICATE. */
MUSTCHECK const struct err *hook_delivery_insert(struct db *,
    const struct hook_delivery *);
/* Removes old ones, some hundreds a call; writes nothing where there is
 * none. */
MUSTCHECK const struct err *hook_tidy(struct db *);

#endif
