/* SPDX-License-Identifier: ISC */
/* Who a request comes from. */
#ifndef SLIPWAY_API_AUTH_H
#define SLIPWAY_API_AUTH_H

#include "api/req.h"

#define AUTH_COOKIE "__Host-slipway"

enum auth_flag {
	AUTH_WRITE = 1 << 0, /* with the cookie: from the same origin only */
};

/* Sets rq->who and rq->role from the token or the session cookie;
 * ERR_UNAUTHENTICATED (WWW-Authenticate is set) or ERR_FORBIDDEN (a write by
 * cookie from elsewhere). */
MUSTCHECK const struct err *auth_check(struct req *, unsigned flags);

#endif
