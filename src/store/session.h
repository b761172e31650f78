/* SPDX-License-Identifier: ISC */
/* Pending sign-ins, and sessions. Secrets are passed as SHA-256 in hex, or
 * sealed. */
#ifndef SLIPWAY_STORE_SESSION_H
#define SLIPWAY_STORE_SESSION_H

#include "db/db.h"
#include "store/principal.h"

#define SIGNIN_SECONDS 600
/* The purpose for which the verifier of a sign-in is sealed: hash of its
 * state. */
#define SIGNIN_PURPOSE "sign-in %s"

struct signin {
	const char *state_hash;
	const char *browser_hash;
	struct blob verifier; /* sealed */
};

struct session {
	int64_t id;
	int64_t user_id;
	int64_t token_id; /* API token that started it; 0 = none */
	const char *hash;
	struct when created_at;
	struct when last_used_at;
	struct when expires_at;
};

/* How long a credential is valid. */
struct session_term {
	int64_t idle; /* seconds of a session, by the database's clock */
	int64_t max;
	bool remote_user; /* nginx authenticates users, so it does not matter
			   * whether the Git server accepts their accounts */
};

MUSTCHECK const struct err *signin_insert(struct db *, const struct signin *);
/* Takes a sign-in, which works only once. ERR_NOTFOUND if it is unknown, of
 * another browser, or older than SIGNIN_SECONDS. An attempt from another
 * browser does not use it up. */
MUSTCHECK const struct err *signin_take(struct db *, struct arena *,
    const char *state_hash, const char *browser_hash, struct signin *out);

/* Stores a session. One that an API token starts expires with the token at the
 * latest; ERR_NOTFOUND if that token was deleted. */
MUSTCHECK const struct err *session_insert(struct db *, const struct session *,
    const struct session_term *, struct when *expires_at);
MUSTCHECK const struct err *session_delete(struct db *, const char *hash);
/* Deletes all sessions of a user, when it is disabled or deleted. */
MUSTCHECK const struct err *session_delete_of(struct db *, int64_t user_id);
/* Finds the user by hash. ERR_NOTFOUND if the session has ended or is idle, the
 * user is disabled or deleted, or the API token that started the session has
 * expired, was deleted or does not work. The token's role limits that of the session. */
MUSTCHECK const struct err *principal_by_session(struct db *, struct arena *,
    const char *hash, const struct session_term *, struct principal *out);
/* Maximum age of the stored last use: five minutes, or a quarter of the idle
 * time. */
int64_t session_touch_seconds(const struct session_term *);
/* Writes at most once in that time. */
MUSTCHECK const struct err *session_touch(struct db *, int64_t id,
    const struct session_term *);
/* Deletes expired rows, some hundreds per call; writes nothing if there are
 * none. */
MUSTCHECK const struct err *session_tidy(struct db *,
    const struct session_term *);

#endif
