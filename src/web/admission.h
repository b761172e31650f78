/* SPDX-License-Identifier: ISC */
/*
 * Admission: who may sign in, and as which user.
 *
 * A user of the Git server is identified by (server, account id). An unknown
 * account is bound to the unbound user with its login, if an administrator has
 * created one; otherwise auth.admins and auth.signup decide whether a user is
 * created. A name that belongs to another account is never reassigned. A
 * deleted user can sign in again only after an administrator creates the user
 * again.
 */
#ifndef SLIPWAY_WEB_ADMISSION_H
#define SLIPWAY_WEB_ADMISSION_H

#include "web/req.h"

/* Inside a transaction: finds, binds or creates the user and updates its
 * profile from the Git server. ERR_FORBIDDEN, with the reason as detail, if the
 * account is not admitted. */
MUSTCHECK const struct err *admission_account(struct db *, struct req *,
    const char *server, const struct forge_account *, struct user *out);
/* The same for a name that nginx has authenticated, compared byte by byte. Call
 * it outside a transaction. */
MUSTCHECK const struct err *admission_name(struct req *, const char *name,
    struct principal *out);

#endif
