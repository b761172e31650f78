/* SPDX-License-Identifier: ISC */
/*
 * Selects the token for requests to the Git server: a user's own, decrypted and
 * fresh, or the service's, but never both in turn. The only place where store,
 * forge and crypto meet; API and dispatcher both use it.
 */
#ifndef SLIPWAY_ACCESS_ACCESS_H
#define SLIPWAY_ACCESS_ACCESS_H

#include "core/settings.h"
#include "crypto/keyring.h"
#include "forge/forge.h"

struct db;

struct access {
	struct db *db;
	struct forge *forge;
	const struct keyring *keyring; /* NULL = users' tokens cannot be
				        * decrypted */
	const struct settings_gitserver *settings;
};

/* Whether users sign in at the Git server, so that their rights there are known;
 * `forge` may be NULL. */
bool access_is_personal(const struct forge *);
/* Encrypts and stores the tokens from a sign-in. */
MUSTCHECK const struct err *access_put(const struct access *, struct arena *,
    int64_t user_id, const struct forge_token *);
/* Returns the user's token, refreshed if it is about to expire. Concurrent
 * callers wait for a single refresh. ERR_NOTFOUND if the user has no valid
 * token of this server; `user_id` 0 never has one. */
MUSTCHECK const struct err *access_of_user(const struct access *,
    struct arena *, int64_t user_id, const char **out);
/* After the server rejected `stale` (401): refreshes it once, or returns what
 * another process has refreshed meanwhile. ERR_NOTFOUND as above. */
MUSTCHECK const struct err *access_renew(const struct access *, struct arena *,
    int64_t user_id, const char *stale, const char **out);

/* The identity used for a request to the Git server. */
enum access_as {
	ACCESS_ANYBODY, /* without a token */
	ACCESS_SERVICE,
	ACCESS_USER,
};

struct access_token {
	const char *text; /* NULL = none */
	enum access_as as;
	/* Whether results may be stored for all users of a project: the token
	 * is the service's, or that of a user who may write projects. */
	bool trusted;
};

/*
 * Selects a token. A user who is bound to an account at a Git server always
 * acts as that account: without a valid token this is ERR_UPSTREAM with sys 401
 * and a detail, even if there are other tokens. All other users, and `user_id`
 * 0, the service itself, use the service's token, or none.
 */
MUSTCHECK const struct err *access_for(const struct access *, struct arena *,
    int64_t user_id, struct access_token *out);

/* Calls `ask` with the token of access_for(), and a second time with a renewed
 * token if the server rejects a user's. If that is rejected, too, the error is
 * ERR_UPSTREAM with sys 401 and a detail, never ERR_UNAUTHENTICATED. If the
 * account itself is rejected, the consequences are those of
 * access_confirm(). */
typedef const struct err *access_ask(struct forge *, struct arena *,
    const struct access_token *, void *context);
MUSTCHECK const struct err *access_call(const struct access *, struct arena *,
    int64_t user_id, access_ask *ask, void *context);

/* Reads the account of a bound user with the user's own token. NULL: the server
 * accepts it. ERR_UNAUTHENTICATED, ERR_FORBIDDEN: it does not; the user's
 * token and sessions have ended, and API tokens do not work until the next
 * sign-in. ERR_NOTFOUND: there is no token. Others:
 * unknown at the moment. */
MUSTCHECK const struct err *access_confirm(const struct access *,
    struct arena *, int64_t user_id);

#endif
