/* SPDX-License-Identifier: ISC */
#include "api/auth.h"

#include <string.h>
#include <strings.h>

#include "core/log.h"
#include "core/str.h"
#include "crypto/crypto.h"

#define TOUCH_MS (INT64_C(5) * 60 * 1000)
#define CREDENTIAL_MAX 256

static const struct err *
refuse(struct req *rq, const char *challenge, const char *why)
{
	answer_header(rq, "WWW-Authenticate", "Bearer realm=\"slipway\"%s",
	    challenge);
	return err_tell(ERR_UNAUTHENTICATED, "%s", why);
}

/* What follows "Bearer "; NULL if the header is of another scheme. */
static const char *
bearer(const char *header)
{
	if (strncasecmp(header, "Bearer ", 7) != 0)
		return NULL;
	header += 7;
	return header + strspn(header, " ");
}

/* The value of the session cookie, in the arena; NULL if it was not sent. */
static const char *
cookie(struct req *rq)
{
	const char *s = rq->in[IN_COOKIE];
	size_t name = strlen(AUTH_COOKIE), len;

	for (; s != NULL && *s != '\0'; s += len + (s[len] == ';')) {
		s += strspn(s, " ");
		len = strcspn(s, ";");
		if (len > name && s[name] == '=' &&
		    strncmp(s, AUTH_COOKIE, name) == 0)
			return arena_strndup(rq->a, s + name + 1,
			    len - name - 1);
	}
	return NULL;
}

/* A page of another site can send our cookie along, but neither of these. */
static bool
same_origin(const struct req *rq)
{
	const char *site = rq->in[IN_SEC_FETCH_SITE];
	const char *origin = rq->in[IN_ORIGIN], *host = rq->in[IN_HOST];

	if (site != NULL)
		return strcmp(site, "same-origin") == 0;
	return origin != NULL && host != NULL &&
	    str_starts(origin, "https://") && strcmp(origin + 8, host) == 0;
}

/* The account behind a token, and that it was used. */
static const struct err *
principal(struct req *rq, const char *token)
{
	const struct err *e;
	char hash[CRYPTO_HASH_HEX];

	crypto_sha256(token, strlen(token), hash);
	e = principal_by_token(rq->db, rq->a, hash, &rq->who);
	if (e != NULL && e->code == ERR_NOTFOUND)
		return refuse(rq, ", error=\"invalid_token\"",
		    "The token or session is not known, has ended, or its "
		    "user may not sign in.");
	if (e != NULL)
		return e;
	rq->role = role_of(rq->who.role);
	rq->who_text = rq->who.username;
	if (rq->who.last_used_at.ms + TOUCH_MS < time_now_ms() &&
	    (e = token_touch(rq->db, &rq->who)) != NULL)
		log_err(e, "last use of a token");
	return NULL;
}

const struct err *
auth_check(struct req *rq, unsigned flags)
{
	const char *header = rq->in[IN_AUTHORIZATION], *secret;

	if (header != NULL) {
		if ((secret = bearer(header)) == NULL)
			return refuse(rq, "",
			    "Send the token as \"Authorization: Bearer …\".");
	} else if ((secret = cookie(rq)) != NULL) {
		if ((flags & AUTH_WRITE) != 0 && !same_origin(rq))
			return err_tell(ERR_FORBIDDEN,
			    "With the cookie, a change must come from a page "
			    "of this service itself.");
	} else {
		return refuse(rq, "", "Sign in or send a token.");
	}
	if (*secret == '\0' || strlen(secret) > CREDENTIAL_MAX)
		return refuse(rq, ", error=\"invalid_token\"",
		    "This is no token of this service.");
	return principal(rq, secret);
}
