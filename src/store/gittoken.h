/* SPDX-License-Identifier: ISC */
/* Users' tokens at the Git server, sealed, and the right to refresh them. */
#ifndef SLIPWAY_STORE_GITTOKEN_H
#define SLIPWAY_STORE_GITTOKEN_H

#include "db/db.h"

#define GITTOKEN_HOLDER 33 /* 128 random bits in hex with a NUL */
/* The purpose for which a token is sealed: id of the user. */
#define GITTOKEN_PURPOSE "git token of user %lld"
#define GITTOKEN_REFRESH_SECONDS 15 /* time limit of a refresh */

struct git_token {
	int64_t user_id;
	const char *server;  /* that issued it */
	struct blob access;  /* sealed */
	struct blob refresh; /* sealed; empty = no refresh possible */
	struct when expires_at;
	int64_t epoch; /* incremented with each change */
};

/* ERR_NOTFOUND also if the user is disabled. */
MUSTCHECK const struct err *gittoken_by_user(struct db *, struct arena *,
    int64_t user_id, struct git_token *out);
/* Replaces the stored token by that of a sign-in. */
MUSTCHECK const struct err *gittoken_put(struct db *, const struct git_token *);
MUSTCHECK const struct err *gittoken_delete(struct db *, int64_t user_id);
/* What the server's rejection of a token means. */
enum gittoken_end {
	GITTOKEN_ACCOUNT, /* the account is blocked or deleted */
	GITTOKEN_REFRESH, /* the same, unless the response to an earlier refresh
			   * of that epoch was lost */
};
/* Deletes the token if it still has that epoch, and refuses the user's account if
 * it is known to be rejected; `ended` is set in that case. Runs a
 * transaction. */
MUSTCHECK const struct err *gittoken_refused(struct db *, int64_t user_id,
    int64_t epoch, enum gittoken_end, bool *ended);
/* Acquires the right to refresh that epoch: ERR_CONFLICT while another process
 * has it, ERR_PRECONDITION if there is a newer epoch, ERR_NOTFOUND without a
 * token. */
MUSTCHECK const struct err *gittoken_refresh_begin(struct db *, int64_t user_id,
    int64_t epoch, const char *holder);
/* Stores the result as epoch + 1; ERR_PRECONDITION if the token was replaced
 * meanwhile. May be repeated after ERR_UNAVAILABLE. */
MUSTCHECK const struct err *gittoken_refresh_end(struct db *,
    const struct git_token *, const char *holder);
/* Releases the right without a result. */
MUSTCHECK const struct err *gittoken_refresh_cancel(struct db *,
    int64_t user_id, const char *holder);

#endif
