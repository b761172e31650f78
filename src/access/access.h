/* SPDX-License-Identifier: ISC */
/*
 * With which token the Git server is asked: a user's own, opened and fresh, or
 * the service's, never one after the other.  The one place where store, forge
 * and crypto meet; API and dispatcher use it alike.
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
	const struct keyring *keyring; /* NULL: users' tokens do not open */
	const struct settings_gitserver *settings;
};

/* Seals and stores what a sign-in has given. */
MUSTCHECK const struct err *access_put(const struct access *, struct arena *,
    int64_t user_id, const struct forge_token *);
/* The user's token, refreshed if it is about to expire: once, whoever asks at
 * the same time waits for that.  ERR_NOTFOUND: the user has none, of this
 * server, that works; `user_id` 0 has none. */
MUSTCHECK const struct err *access_of_user(const struct access *,
    struct arena *, int64_t user_id, const char **out);
/* After the server refused `stale` (401): refreshes it once, or hands out what
 * another has refreshed meanwhile; ERR_NOTFOUND as above. */
MUSTCHECK const struct err *access_renew(const struct access *, struct arena *,
    int64_t user_id, const char *stale, const char **out);

/* As whom the Git server is asked. */
enum access_as {
	ACCESS_ANYBODY, /* without a token */
	ACCESS_SERVICE,
	ACCESS_USER,
};

struct access_token {
	const char *text; /* NULL = none */
	enum access_as as;
	/* What it shows may be remembered of a project for everybody: the
	 * service itself asks, or a user who may write projects. */
	bool trusted;
};

/*
 * Decides whose token is used.  A user who is bound to an account at a Git
 * server is always asked as that account: without a token that works this is
 * ERR_UPSTREAM with sys 401 and words for the client, whatever other token
 * there is.  The service's token, or none, serves all other users and
 * `user_id` 0, the service itself.
 */
MUSTCHECK const struct err *access_for(const struct access *, struct arena *,
    int64_t user_id, struct access_token *out);

/* Calls `ask` with the token of access_for(), and once more with a renewed one
 * if the server refuses a user's.  A token that is refused then is
 * ERR_UPSTREAM with sys 401 and words, never ERR_UNAUTHENTICATED.  Where the
 * account itself is refused, the user's sessions end, as by access_confirm(). */
typedef const struct err *access_ask(struct forge *, struct arena *,
    const struct access_token *, void *context);
MUSTCHECK const struct err *access_call(const struct access *, struct arena *,
    int64_t user_id, access_ask *ask, void *context);

/* Asks for the account of a user who is bound to one here, with its own token.
 * NULL: the server accepts it.  ERR_UNAUTHENTICATED, ERR_FORBIDDEN: it does not,
 * and the user's token and sessions are ended.  ERR_NOTFOUND: there is no token
 * to ask with.  Others: not known now. */
MUSTCHECK const struct err *access_confirm(const struct access *,
    struct arena *, int64_t user_id);

#endif
