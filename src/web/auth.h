/* SPDX-License-Identifier: ISC */
/* Authentication of requests. */
#ifndef SLIPWAY_WEB_AUTH_H
#define SLIPWAY_WEB_AUTH_H

#include "web/req.h"

#define AUTH_COOKIE "__Host-slipway"
#define AUTH_COOKIE_RULES "; Secure; HttpOnly; SameSite=Lax"
#define AUTH_SESSION "sls_" /* prefix of session tokens */

enum auth_flag {
	AUTH_WRITE = 1 << 0, /* a change: credentials that browsers add by
			      * themselves count from the same origin only */
};

/* Authenticates by token or session, else by the name from nginx if enabled,
 * else by the session cookie, and sets rq->who and rq->role.
 * ERR_UNAUTHENTICATED (with WWW-Authenticate set), or ERR_FORBIDDEN if a change
 * by cookie or nginx comes from another origin or the user is not admitted. */
MUSTCHECK const struct err *auth_check(struct req *, unsigned flags);
/* The session token of the request, valid or not; NULL if there is none. */
const char *auth_session(struct req *);
/* The value of a cookie, in the arena; NULL if it was not sent. */
const char *auth_cookie(struct req *, const char *name);
/* Whether the browser states that a page of this service sent the request. */
bool auth_same_origin(const struct req *);

#endif
