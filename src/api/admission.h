/* SPDX-License-Identifier: ISC */
/*
 * Who may come in, and as which user.
 *
 * A user of the Git server is known by (server, number).  Where that is new,
 * a user that an administrator made by that login, and that nobody has signed
 * in as, is theirs; else `auth.admins` and `auth.signup` say whether they may.
 * A name that belongs to another account is never given away, and whom an
 * administrator has deleted comes in again only when one makes a user for them.
 */
#ifndef SLIPWAY_API_ADMISSION_H
#define SLIPWAY_API_ADMISSION_H

#include "api/req.h"

/* Inside a transaction: finds, binds or makes the user, and writes what the Git
 * server says of them; ERR_FORBIDDEN tells why not. */
MUSTCHECK const struct err *admission_account(struct db *, struct req *,
    const char *server, const struct forge_account *, struct user *out);
/* Whom nginx has let in under that name, byte by byte; outside of a
 * transaction. */
MUSTCHECK const struct err *admission_name(struct req *, const char *name,
    struct principal *out);

#endif
