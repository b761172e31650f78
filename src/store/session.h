/* SPDX-License-Identifier: ISC */
/* Sign-ins that were begun, and the sessions they end in.  Secrets come in as
 * SHA-256 in hex, or sealed. */
#ifndef SLIPWAY_STORE_SESSION_H
#define SLIPWAY_STORE_SESSION_H

#include "db/db.h"
#include "store/user.h"

#define SIGNIN_SECONDS 600
/* What the verifier of a sign-in is sealed for: the hash of its state. */
#define SIGNIN_PURPOSE "sign-in %s"

struct signin {
	const char *state_hash;
	const char *browser_hash;
	struct blob verifier; /* sealed */
};

struct session {
	int64_t id;
	int64_t user_id;
	const char *hash;
	struct when created_at;
	struct when last_used_at;
	struct when expires_at;
};

/* How long a session lives, by the database's clock; seconds. */
struct session_term {
	int64_t idle;
	int64_t max;
};

MUSTCHECK const struct err *signin_insert(struct db *, const struct signin *);
/* Takes it, once and for all: ERR_NOTFOUND if it is not there, of another
 * browser, or older than SIGNIN_SECONDS. Another browser's try does not use it
 * up. */
MUSTCHECK const struct err *signin_take(struct db *, struct arena *,
    const char *state_hash, const char *browser_hash, struct signin *out);

MUSTCHECK const struct err *session_insert(struct db *, int64_t user_id,
    const char *hash, const struct session_term *, struct when *expires_at);
MUSTCHECK const struct err *session_delete(struct db *, const char *hash);
/* All of a user, when it is disabled or deleted. */
MUSTCHECK const struct err *session_delete_of(struct db *, int64_t user_id);
/* By hash: ended, idle, of inactive or deleted users: ERR_NOTFOUND. */
MUSTCHECK const struct err *principal_by_session(struct db *, struct arena *,
    const char *hash, const struct session_term *, struct principal *out);
/* How old a time of last use may get: five minutes, or a quarter of the idle
 * time. */
int64_t session_touch_seconds(const struct session_term *);
/* At most once in that time. */
MUSTCHECK const struct err *session_touch(struct db *, int64_t id,
    const struct session_term *);
/* Users with live sessions whose account at that server was not confirmed for
 * so long, some at a time: struct session_check. */
struct session_check {
	int64_t user_id;
};
MUSTCHECK const struct err *session_unchecked(struct db *, struct arena *,
    const char *server, int64_t seconds, struct list *out);
/* The right to confirm one for `hold` seconds; ERR_CONFLICT if another has it
 * or has done so. */
MUSTCHECK const struct err *session_check_take(struct db *, int64_t user_id,
    int64_t seconds, int64_t hold);
/* The server has confirmed the account. */
MUSTCHECK const struct err *session_checked(struct db *, int64_t user_id);
/* Ends those that were not confirmed for so long. */
MUSTCHECK const struct err *session_end_unchecked(struct db *, int64_t user_id,
    int64_t seconds);
/* Removes what is over, some hundreds a call; writes nothing where there is
 * none. */
MUSTCHECK const struct err *session_tidy(struct db *,
    const struct session_term *);

#endif
