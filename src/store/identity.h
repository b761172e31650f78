/* SPDX-License-Identifier: ISC */
/* Identity of users at the Git server: (server, account id), never a name. */
#ifndef SLIPWAY_STORE_IDENTITY_H
#define SLIPWAY_STORE_IDENTITY_H

#include "store/user.h"

struct identity {
	int64_t user_id;
	const char *forge;    /* server; NULL = not bound yet */
	const char *forge_id; /* account id in decimal */
};

/* The account of any user, live or deleted. */
struct account {
	int64_t user_id;
	const char *forge; /* server; NULL = never bound */
	const char *role;
	const char *status;
	bool valid;
};

MUSTCHECK const struct err *identity_account(struct db *, struct arena *,
    int64_t user_id, struct account *out);

/* The account that a live user is bound to. */
MUSTCHECK const struct err *identity_of(struct db *, struct arena *,
    int64_t user_id, struct identity *out);
/* Whether the account, or this name if `forge` is NULL, belonged to a deleted
 * user. */
MUSTCHECK const struct err *identity_was_deleted(struct db *,
    const struct identity *, const char *username, bool *out);
/* Binds a user to an account; ERR_CONFLICT if it is bound already. */
MUSTCHECK const struct err *identity_bind(struct db *, const struct identity *);
/* Records the current time as the user's last sign-in. */
MUSTCHECK const struct err *identity_seen(struct db *, int64_t user_id);
/* Claims administrator rights for a login, which succeeds only once; `out` is
 * set if this call succeeded. Call it in the transaction that creates the
 * user. */
MUSTCHECK const struct err *identity_claim(struct db *, const struct identity *,
    const char *login, bool *out);
/* Finds an active user by the exact bytes of the name; ERR_NOTFOUND. */
MUSTCHECK const struct err *principal_by_name(struct db *, struct arena *,
    const char *username, struct principal *out);

#endif
