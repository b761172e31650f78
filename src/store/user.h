/* SPDX-License-Identifier: ISC */
/* Users and their API tokens. */
#ifndef SLIPWAY_STORE_USER_H
#define SLIPWAY_STORE_USER_H

#include "db/db.h"
#include "store/page.h"
#include "store/principal.h"
#include "store/role.h"

struct user {
	int64_t id;
	const char *username;
	const char *name;
	const char *email;
	const char *avatar_url;
	const char *role;
	const char *status; /* active, inactive */
	struct when created_at;
	struct when last_login_at;
	int64_t version;
};

struct api_token {
	int64_t id;
	int64_t user_id;
	const char *name;
	const char *role;
	const char *token; /* only in the response to POST */
	const char *hash;  /* SHA-256 in hex */
	struct when created_at;
	struct when last_used_at;
	struct when expires_at;
};

struct user_filter {
	const char *keyword; /* substring of username, name or email; NULL =
			      * any */
	const char *status;
	const char *role;
};

extern const struct shape user_shape;
extern const struct shape api_token_shape;

MUSTCHECK const struct err *user_page(struct db *, struct arena *,
    const struct user_filter *, struct page *, struct list *out);
MUSTCHECK const struct err *user_by_id(struct db *, struct arena *, int64_t id,
    struct user *out);
/* The username, also that of a deleted user. */
MUSTCHECK const struct err *user_name_of(struct db *, struct arena *,
    int64_t id, const char **out);
MUSTCHECK const struct err *user_lock(struct db *, struct arena *, int64_t id,
    struct user *out);
MUSTCHECK const struct err *user_by_name(struct db *, struct arena *,
    const char *username, struct user *out);
/* Finds the live user that is bound to that account of a Git server and locks
 * the row; ERR_NOTFOUND. */
MUSTCHECK const struct err *user_by_account(struct db *, struct arena *,
    const char *forge, const char *forge_id, struct user *out);
/* Adds conflicts: another user has the name, or a change would leave no active
 * admin. Ignores members that are NULL. */
MUSTCHECK const struct err *user_judge(struct db *, const struct user *,
    struct faults *);
MUSTCHECK const struct err *user_insert(struct db *, const struct user *,
    int64_t *id);
/* Demoting, disabling or deleting the last active admin is ERR_CONFLICT. Call
 * these inside a transaction. Sessions end when a user is disabled or
 * deleted. */
MUSTCHECK const struct err *user_update(struct db *, const struct user *);
MUSTCHECK const struct err *user_delete(struct db *, int64_t id);

MUSTCHECK const struct err *token_page(struct db *, struct arena *,
    int64_t user_id, struct page *, struct list *out);
MUSTCHECK const struct err *token_insert(struct db *, const struct api_token *,
    int64_t *id);
MUSTCHECK const struct err *token_by_id(struct db *, struct arena *,
    int64_t user_id, int64_t id, struct api_token *out);
MUSTCHECK const struct err *token_delete(struct db *, int64_t user_id,
    int64_t id);
/* Finds the user by the token's hash. ERR_NOTFOUND if the token has expired or
 * was deleted, or the user is disabled or deleted. */
MUSTCHECK const struct err *principal_by_token(struct db *, struct arena *,
    const char *hash, struct principal *out);
/* Writes at most once in five minutes per token. */
MUSTCHECK const struct err *token_touch(struct db *, const struct principal *);

#endif
