/* SPDX-License-Identifier: ISC */
#include "web/auth.h"

#include <string.h>
#include <strings.h>

#include "core/log.h"
#include "core/str.h"
#include "crypto/crypto.h"
#include "store/session.h"
#include "web/admission.h"

#define TOUCH_MS (INT64_C(5) * 60 * 1000)
#define CREDENTIAL_MAX 256

static const struct err *
auth_reject(struct req *rq, const char *challenge, const char *why)
{
	answer_header(rq, "WWW-Authenticate", "Bearer realm=\"slipway\"%s",
	    challenge);
	return err_public(ERR_UNAUTHENTICATED, "%s", why);
}

/* The text after "Bearer "; NULL if the header uses another scheme. */
static const char *
bearer_text(const char *header)
{
	if (strncasecmp(header, "Bearer ", 7) != 0)
		return NULL;
	header += 7;
	return header + strspn(header, " ");
}

const char *
auth_cookie(struct req *rq, const char *name)
{
	const char *s = rq->in[IN_COOKIE];
	size_t n = strlen(name), len;

	for (; s != NULL && *s != '\0'; s += len + (s[len] == ';')) {
		s += strspn(s, " ");
		len = strcspn(s, ";");
		if (len > n && s[n] == '=' && strncmp(s, name, n) == 0)
			return arena_strndup(rq->a, s + n + 1, len - n - 1);
	}
	return NULL;
}

/* A page of another site can make the browser send our cookie, but it can forge
 * neither of these headers. */
bool
auth_same_origin(const struct req *rq)
{
	const char *site = rq->in[IN_SEC_FETCH_SITE];
	const char *origin = rq->in[IN_ORIGIN], *host = rq->in[IN_HOST];

	if (site != NULL)
		return strcmp(site, "same-origin") == 0;
	return origin != NULL && host != NULL &&
	    str_starts(origin, "https://") && strcmp(origin + 8, host) == 0;
}

static struct session_term
term_of(const struct req *rq)
{
	return (struct session_term){ .idle = rq->settings->auth.session_idle,
		.max = rq->settings->auth.session_max };
}

static bool
is_session(const char *secret)
{
	return str_starts(secret, AUTH_SESSION);
}

/* Records the use. A failure is logged only: authentication has succeeded. */
static void
use_record(struct req *rq)
{
	const struct session_term term = term_of(rq);
	const struct err *e = NULL;
	int64_t old = time_now_ms() - rq->who.last_used_at.ms;

	if (rq->who.session_id != 0) {
		if (old >= session_touch_seconds(&term) * 1000)
			e = session_touch(rq->db, rq->who.session_id, &term);
	} else if (old > TOUCH_MS) {
		e = token_touch(rq->db, &rq->who);
	}
	if (e != NULL)
		log_fault(e, "recording the last use of a token or session");
}

/* The user behind a token or session. */
static const struct err *
principal_find(struct req *rq, const char *secret)
{
	const struct session_term term = term_of(rq);
	const struct err *e;
	char hash[CRYPTO_HASH_HEX];

	if (*secret == '\0' || strlen(secret) > CREDENTIAL_MAX)
		return auth_reject(rq, ", error=\"invalid_token\"",
		    "The token was not issued by this service.");
	crypto_sha256(secret, strlen(secret), hash);
	e = is_session(secret) ?
	    principal_by_session(rq->db, rq->a, hash, &term, &rq->who) :
	    principal_by_token(rq->db, rq->a, hash, &rq->who);
	if (e != NULL && e->code == ERR_NOTFOUND)
		return auth_reject(rq, ", error=\"invalid_token\"",
		    "The token or session is unknown or expired, or its user "
		    "is disabled: sign in again, or use another token.");
	if (e == NULL && rq->who.is_refused &&
	    !rq->settings->auth.remote_user) /* users cannot sign in */
		return auth_reject(rq, ", error=\"invalid_token\"",
		    "The Git server no longer accepts the account of the "
		    "token's user. The token works again after the user has "
		    "signed in with that account.");
	if (e == NULL)
		use_record(rq);
	return e;
}

/* The name from nginx; NULL if auth.remote_user is off. */
static const char *
remote_name(const struct req *rq)
{
	return rq->settings->auth.remote_user ? rq->in[IN_REMOTE_USER] : NULL;
}

const char *
auth_session(struct req *rq)
{
	const char *header = rq->in[IN_AUTHORIZATION];
	const char *secret = header == NULL ? NULL : bearer_text(header);

	if (secret == NULL)
		secret = auth_cookie(rq, AUTH_COOKIE);
	return secret != NULL && is_session(secret) ? secret : NULL;
}

/* A browser sends cookies and nginx's password with every request, even one
 * that a page of another site triggers, so they do not suffice for a change. */
static const struct err *
check_ambient(const struct req *rq, unsigned flags)
{
	if ((flags & AUTH_WRITE) == 0 || auth_same_origin(rq))
		return NULL;
	return err_public(ERR_FORBIDDEN,
	    "A change that is authenticated by cookie or by nginx must come "
	    "from a page of this service. Programs send a token instead.");
}

const struct err *
auth_check(struct req *rq, unsigned flags)
{
	const char *header = rq->in[IN_AUTHORIZATION], *secret = NULL;
	const char *name = remote_name(rq);
	const struct err *e;

	if (header != NULL)
		secret = bearer_text(header);
	if (secret != NULL) {
		e = principal_find(rq, secret);
	} else if (name != NULL) {
		if ((e = check_ambient(rq, flags)) == NULL)
			e = admission_name(rq, name, &rq->who);
	} else if (header != NULL) {
		return auth_reject(rq, "",
		    "Send the token as \"Authorization: Bearer …\".");
	} else if ((secret = auth_cookie(rq, AUTH_COOKIE)) != NULL) {
		if ((e = check_ambient(rq, flags)) == NULL)
			e = principal_find(rq, secret);
	} else {
		return auth_reject(rq, "",
		    "Authentication is required. Sign in or "
		    "send a token.");
	}
	if (e != NULL)
		return e;
	rq->role = role_of(rq->who.role);
	rq->who_text = rq->who.username;
	return NULL;
}
