/* SPDX-License-Identifier: ISC */
/* Who somebody is at the Git server: (server, number), never a name. */
#ifndef SLIPWAY_STORE_IDENTITY_H
#define SLIPWAY_STORE_IDENTITY_H

#include "store/user.h"

struct identity {
	int64_t user_id;
	const char *forge;    /* server; NULL = bound to none yet */
	const char *forge_id; /* number there, in decimal */
};

/* The account of any user, deleted ones too. */
struct account {
	int64_t user_id;
	const char *forge; /* server; NULL = has never been bound to one */
	const char *role;
	const char *status;
	bool valid;
};

MUSTCHECK const struct err *identity_account(struct db *, struct arena *,
    int64_t user_id, struct account *out);

/* What a live user is bound to. */
MUSTCHECK const struct err *identity_of(struct db *, struct arena *,
    int64_t user_id, struct identity *out);
/* Whether a deleted user had it; or, where `forge` is NULL, that name. */
MUSTCHECK const struct err *identity_was_deleted(struct db *,
    const struct identity *, const char *username, bool *out);
/* Binds a user that is bound to none: ERR_CONFLICT if it is. */
MUSTCHECK const struct err *identity_bind(struct db *, const struct identity *);
/* The user signed in just now. */
MUSTCHECK const struct err *identity_seen(struct db *, int64_t user_id);
/* A login that makes an administrator does so once: `out` tells whether it was
 * this call. Inside the transaction that makes one. */
MUSTCHECK const struct err *identity_claim(struct db *, const struct identity *,
    const char *login, bool *out);
/* An active user by the very bytes of its name; ERR_NOTFOUND. */
MUSTCHECK const struct err *principal_by_name(struct db *, struct arena *,
    const char *username, struct principal *out);

#endif
