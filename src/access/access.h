/* SPDX-License-Identifier: ISC */
/*
 * With which token the Git server is asked: a user's own, opened and fresh, or
 * the service's.  The one place where store, forge and crypto meet; API and
 * dispatcher use it alike.
 */
#ifndef SLIPWAY_ACCESS_ACCESS_H
#define SLIPWAY_ACCESS_ACCESS_H

#include "core/settings.h"
#include "crypto/crypto.h"
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
/* The user's, else the service's, else NULL (as anybody). */
MUSTCHECK const struct err *access_for(const struct access *, struct arena *,
    int64_t user_id, const char **out);

/* Calls `ask` with the token of access_for(); if the server refuses it, once
 * more with a renewed one, then with the service's.  Where that is refused
 * too: ERR_UPSTREAM with words, never ERR_UNAUTHENTICATED. */
typedef const struct err *access_ask(struct forge *, struct arena *,
    const char *token, void *context);
MUSTCHECK const struct err *access_call(const struct access *, struct arena *,
    int64_t user_id, access_ask *ask, void *context);

#endif
