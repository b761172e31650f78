/* SPDX-License-Identifier: ISC */
/* Users' accounts at the Git server: when it last accepted them, and whether it
 * refuses them. */
#ifndef SLIPWAY_STORE_GITACCOUNT_H
#define SLIPWAY_STORE_GITACCOUNT_H

#include "db/db.h"

struct gitaccount {
	int64_t user_id;
};

/* Active users with sessions or API tokens whose account at that server has not
 * been confirmed for so long and is not refused, a few at a time: struct
 * gitaccount. */
MUSTCHECK const struct err *gitaccount_unchecked(struct db *, struct arena *,
    const char *server, int64_t seconds, struct list *out);
/* Acquires the right to confirm an account for `hold` seconds; ERR_CONFLICT if
 * another process has it or has confirmed the account. */
MUSTCHECK const struct err *gitaccount_take(struct db *, int64_t user_id,
    int64_t seconds, int64_t hold);
/* Records that the server has confirmed the account. One that is refused stays
 * refused. */
MUSTCHECK const struct err *gitaccount_confirm(struct db *, int64_t user_id);
/* Records that the user has signed in with the account. */
MUSTCHECK const struct err *gitaccount_accept(struct db *, int64_t user_id);
/* Inside a transaction that has locked the user's row: ends the user's sessions.
 * API tokens do not work until the account is accepted. */
MUSTCHECK const struct err *gitaccount_refuse(struct db *, int64_t user_id);
/* The same in a transaction of its own, if the account has not been confirmed
 * for so long. */
MUSTCHECK const struct err *gitaccount_refuse_unchecked(struct db *,
    int64_t user_id, int64_t seconds);

#endif
