/* SPDX-License-Identifier: ISC */
/* Who a request comes from. */
#ifndef SLIPWAY_API_AUTH_H
#define SLIPWAY_API_AUTH_H

#include "api/req.h"

#define AUTH_COOKIE "__Host-slipway"
#define AUTH_COOKIE_RULES "; Secure; HttpOnly; SameSite=Lax"
#define AUTH_SESSION "sls_" /* what a session's token begins with */

enum auth_flag {
	AUTH_WRITE = 1 << 0, /* by a credential that browsers add themselves:
			      * from the same origin only */
};

/* Sets rq->who and rq->role from the token or session, from nginx's word where
 * the settings have it, or from the session cookie, in this order;
 * ERR_UNAUTHENTICATED (WWW-Authenticate is set) or ERR_FORBIDDEN (a write by
 * cookie or nginx from elsewhere, somebody who is not let in). */
MUSTCHECK const struct err *auth_check(struct req *, unsigned flags);
/* The session that came along, valid or not; NULL. */
const char *auth_session(struct req *);
/* The value of a cookie, in the arena; NULL if it was not sent. */
const char *auth_cookie(struct req *, const char *name);
/* Whether the browser says that a page of this service asks. */
bool auth_same_origin(const struct req *);

#endif
