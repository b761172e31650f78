/* SPDX-License-Identifier: ISC */
/* Starts sessions: the secret, the row, the cookie and the response. */
#ifndef SLIPWAY_API_LOGIN_H
#define SLIPWAY_API_LOGIN_H

#include "crypto/crypto.h"
#include "web/req.h"

struct login {
	char secret[CRYPTO_TOKEN_MAX];
	char hash[CRYPTO_HASH_HEX];
	char before[CRYPTO_HASH_HEX]; /* the browser's previous session; "" =
				       * none */
	struct when expires_at;
};

extern const struct shape login_shape;

/* ERR_CONFIG if nginx authenticates users, so that sessions do not
 * count. */
MUSTCHECK const struct err *login_allowed(const struct req *);
/* ERR_FORBIDDEN if a browser says that a page of another site sent the
 * request. */
MUSTCHECK const struct err *login_same_origin(const struct req *);
/* Creates the secret. */
void login_init(struct req *, struct login *);
/* Inside a transaction: stores the session in place of the browser's previous
 * one. With a token_id, the session has the token's role and expiry at most;
 * ERR_NOTFOUND if the token was deleted meanwhile. */
MUSTCHECK const struct err *login_save(struct req *, struct login *,
    int64_t user_id, int64_t token_id);
/* Responds with a stored session and its cookie. */
void login_answer(struct req *, const struct login *, struct user *);

#endif
