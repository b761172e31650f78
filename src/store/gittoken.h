/* SPDX-License-Identifier: ISC */
/* Users' tokens at the Git server, sealed, and who may refresh them now. */
#ifndef SLIPWAY_STORE_GITTOKEN_H
#define SLIPWAY_STORE_GITTOKEN_H

#include "db/db.h"

#define GITTOKEN_HOLDER 33 /* 128 random bits in hex with a NUL */
/* What a token is sealed for: the number of the user. */
#define GITTOKEN_PURPOSE "git token of user %lld"
#define GITTOKEN_REFRESH_SECONDS 15 /* that one refresh may take */

struct git_token {
	int64_t user_id;
	const char *server;  /* that gave it */
	struct blob access;  /* sealed */
	struct blob refresh; /* sealed; none = cannot be refreshed */
	struct when expires_at;
	int64_t epoch; /* counts what was stored */
};

/* ERR_NOTFOUND also where the user is disabled. */
MUSTCHECK const struct err *gittoken_by_user(struct db *, struct arena *,
    int64_t user_id, struct git_token *out);
/* In the place of what is there. */
MUSTCHECK const struct err *gittoken_put(struct db *, const struct git_token *);
MUSTCHECK const struct err *gittoken_delete(struct db *, int64_t user_id);
/* What the server's refusal of a token says. */
enum gittoken_end {
	GITTOKEN_ACCOUNT, /* the account is blocked or gone */
	GITTOKEN_REFRESH, /* the same, unless a refresh of that epoch was tried
			   * before and its answer lost */
};
/* Deletes the token while it is that epoch, and ends the user's sessions where
 * the account is known to be refused: `ended` tells whether it did.  Runs a
 * transaction. */
MUSTCHECK const struct err *gittoken_refused(struct db *, int64_t user_id,
    int64_t epoch, enum gittoken_end, bool *ended);
/* The right to refresh that epoch: ERR_CONFLICT while another has it,
 * ERR_PRECONDITION if there is a newer epoch, ERR_NOTFOUND without a token. */
MUSTCHECK const struct err *gittoken_refresh_begin(struct db *, int64_t user_id,
    int64_t epoch, const char *holder);
/* What came of it, as epoch + 1; ERR_PRECONDITION if the token was put anew
 * meanwhile. May be repeated after ERR_UNAVAILABLE. */
MUSTCHECK const struct err *gittoken_refresh_end(struct db *,
    const struct git_token *, const char *holder);
/* Gives the right back without a result. */
MUSTCHECK const struct err *gittoken_refresh_cancel(struct db *,
    int64_t user_id, const char *holder);

#endif
