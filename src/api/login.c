/* SPDX-License-Identifier: ISC */
#include "api/login.h"

#include <string.h>

#include "core/str.h"
#include "store/session.h"
#include "web/auth.h"

struct login_made {
	const char *token;
	struct when expires_at;
	struct list user; /* one */
};

#define L(m, fl, ...) FIELD(struct login_made, m, FIELD_OUT | (fl), __VA_ARGS__)
static const struct field login_fields[] = {
	L(token, 0, .doc = "Session token."),
	L(expires_at, 0, .doc = "When the session expires at the latest."),
	L(user, FIELD_ONE, .shape = &user_shape, .doc = "The signed-in user."),
	FIELD_END,
};
const struct shape login_shape = {
	.name = "Login",
	.fields = login_fields,
	.size = sizeof(struct login_made),
	.doc = "A new session.",
};

const struct err *
login_allowed(const struct req *rq)
{
	/* nginx and the Git server may give one name to different people */
	if (rq->settings->auth.remote_user)
		return err_public(ERR_CONFIG,
		    "Users are authenticated by nginx (auth.remote_user), so "
		    "they cannot sign in here.");
	return NULL;
}

const struct err *
login_same_origin(const struct req *rq)
{
	if ((rq->in[IN_ORIGIN] != NULL || rq->in[IN_SEC_FETCH_SITE] != NULL) &&
	    !auth_same_origin(rq))
		return err_public(ERR_FORBIDDEN,
		    "A page of this service must complete the sign-in.");
	return NULL;
}

void
login_init(struct req *rq, struct login *login)
{
	const char *last = auth_cookie(rq, AUTH_COOKIE);

	*login = (struct login){ .before = "" };
	if (last != NULL)
		crypto_sha256(last, strlen(last), login->before);
	crypto_token(AUTH_SESSION, login->secret);
	crypto_sha256(login->secret, strlen(login->secret), login->hash);
}

const struct err *
login_save(struct req *rq, struct login *login, int64_t user_id,
    int64_t token_id)
{
	const struct session new = { .user_id = user_id,
		.token_id = token_id,
		.hash = login->hash };
	const struct session_term term = {
		.idle = rq->settings->auth.session_idle,
		.max = rq->settings->auth.session_max,
	};
	const struct err *e;

	if (login->before[0] != '\0' &&
	    (e = session_delete(rq->db, login->before)) != NULL)
		return e;
	return session_insert(rq->db, &new, &term, &login->expires_at);
}

void
login_answer(struct req *rq, const struct login *login, struct user *user)
{
	const struct login_made made = { .token = login->secret,
		.expires_at = login->expires_at,
		.user = { .items = user, .n = 1 } };
	const struct when ends = rq->who.expires_at; /* of its token */
	int64_t age = rq->settings->auth.session_max;

	if (ends.ms != 0 && ends.ms < time_now_ms() + age * 1000)
		age = (ends.ms - time_now_ms()) / 1000;
	answer_header(rq, "Set-Cookie",
	    AUTH_COOKIE "=%s; Path=/; Max-Age=%lld" AUTH_COOKIE_RULES,
	    login->secret, (long long)age);
	answer_item(rq, &login_shape, &made, 0);
}
