/* SPDX-License-Identifier: ISC */
#include <string.h>

#include "api/grant.h"
#include "api/login.h"
#include "api/resources.h"
#include "core/str.h"
#include "crypto/crypto.h"
#include "store/identity.h"
#include "store/member.h"
#include "store/session.h"
#include "store/user.h"
#include "web/audited.h"
#include "web/auth.h"
#include "web/scope.h"

#define TOKEN_VERSION 1 /* a token never changes */

static const struct err *
page_of_list(struct req *rq, struct page *p, struct list *out)
{
	return token_page(rq->db, rq->a, rq->who.user_id, p, out);
}

static const struct err *
api_token_list(struct req *rq)
{
	return answer_pages(rq, &api_token_shape, page_of_list);
}

/* A token cannot have a higher role or live longer than the credential that
 * creates it. */
static const struct err *
api_token_judge(struct req *rq, const void *item)
{
	const struct api_token *t = item;

	return grant_judge(rq, t->role, t->expires_at);
}

struct making {
	struct req *rq;
	const struct api_token *sent;
	struct api_token *made;
};

/* A token is shown only once: the transaction fails unless it can be read. */
static const struct err *
make_body(struct db *db, void *context)
{
	const struct making *m = context;
	const struct err *e;
	int64_t id;

	if ((e = token_insert(db, m->sent, &id)) != NULL ||
	    (e = audited_change(m->rq, AUDIT_OF_TOKEN, id, 0)) != NULL)
		return e;
	return token_by_id(db, m->rq->a, m->sent->user_id, id, m->made);
}

static const struct err *
api_token_create(struct req *rq)
{
	const struct api_token *sent = rq->body;
	struct api_token t = *sent, made;
	char token[CRYPTO_TOKEN_MAX], hash[CRYPTO_HASH_HEX];
	struct making m = { .rq = rq, .sent = &t, .made = &made };
	const struct err *e;

	if ((e = req_judge(rq)) != NULL ||
	    (e = grant_fill(rq, &t.role, &t.expires_at)) != NULL)
		return e;
	crypto_token("slw_", token);
	crypto_sha256(token, strlen(token), hash);
	t.user_id = rq->who.user_id;
	t.hash = hash;
	if ((e = req_transaction(rq, make_body, &m)) != NULL)
		return e;
	made.token = token;
	answer_location(rq, "/api/auth/tokens/%lld", (long long)made.id);
	answer_item(rq, &api_token_shape, &made, TOKEN_VERSION);
	return NULL;
}

static const struct err *
api_token_show(struct req *rq)
{
	const struct err *e;
	struct api_token t;

	if ((e = token_by_id(rq->db, rq->a, rq->who.user_id, rq->id[0], &t)) !=
	    NULL)
		return e;
	answer_item(rq, &api_token_shape, &t, TOKEN_VERSION);
	return NULL;
}

/* A stolen token with a low role cannot delete tokens with a higher one. The
 * user's own role limits what a token can do. */
static const struct err *
removal_allowed(struct req *rq, const struct api_token *t)
{
	const struct err *e;
	enum role reach, highest;
	struct user u;

	if (rq->who.token_id == 0 || rq->who.token_id == t->id)
		return NULL;
	if ((e = scope_reach(rq, &reach)) != NULL || role_of(t->role) <= reach)
		return e;
	if ((e = user_by_id(rq->db, rq->a, rq->who.user_id, &u)) != NULL ||
	    (e = member_highest(rq->db, rq->a, rq->who.user_id, &highest)) !=
		NULL)
		return e;
	if (role_of(u.role) <= reach && highest <= reach)
		return NULL;
	return err_public(ERR_FORBIDDEN,
	    "A token cannot delete a token with a higher role. Sign in, or use "
	    "a token with the role %s.",
	    t->role);
}

static const struct err *
remove_body(struct db *db, void *context)
{
	struct req *rq = context;
	const struct err *e;

	/* first: a token that deletes itself still has its name */
	if ((e = audited_change(rq, AUDIT_OF_TOKEN, rq->id[0], 0)) != NULL)
		return e;
	return token_delete(db, rq->who.user_id, rq->id[0]);
}

static const struct err *
api_token_remove(struct req *rq)
{
	const struct err *e;
	struct api_token t;

	if ((e = token_by_id(rq->db, rq->a, rq->who.user_id, rq->id[0], &t)) !=
		NULL ||
	    (e = removal_allowed(rq, &t)) != NULL)
		return e;
	if ((e = req_match(rq, &api_token_shape, TOKEN_VERSION)) != NULL)
		return e;
	return req_transaction(rq, remove_body, rq);
}

struct beginning {
	struct req *rq;
	struct login login;
	struct user user;
};

static const struct err *
begin_body(struct db *db, void *context)
{
	struct beginning *b = context;
	const struct principal *who = &b->rq->who;
	const struct err *e;

	if ((e = login_save(b->rq, &b->login, who->user_id, who->token_id)) !=
	    NULL)
		return e;
	if ((e = audited_change(b->rq, AUDIT_OF_SESSION, 0, 0)) != NULL)
		return e;
	if ((e = identity_seen(db, who->user_id)) != NULL)
		return e;
	return user_by_id(db, b->rq->a, who->user_id, &b->user);
}

/* A session must not start others, which would live as long again. */
static const struct err *
api_auth_session(struct req *rq)
{
	struct beginning b = { .rq = rq };
	const struct err *e;

	if ((e = login_allowed(rq)) != NULL ||
	    (e = login_same_origin(rq)) != NULL)
		return e;
	if (rq->who.token_id == 0 || rq->who.session_id != 0)
		return err_public(ERR_FORBIDDEN,
		    "Only an API token starts a session. Send one as "
		    "\"Authorization: Bearer …\".");
	login_init(rq, &b.login);
	if ((e = req_transaction(rq, begin_body, &b)) != NULL)
		return e;
	login_answer(rq, &b.login, &b.user);
	return NULL;
}

static const struct err *
api_auth_info(struct req *rq)
{
	const struct err *e;
	struct user u;

	if ((e = user_by_id(rq->db, rq->a, rq->who.user_id, &u)) != NULL)
		return e;
	answer_item(rq, &user_shape, &u, u.version);
	return NULL;
}

struct ending {
	struct req *rq;
	char hash[CRYPTO_HASH_HEX];
};

static const struct err *
end_body(struct db *db, void *context)
{
	const struct ending *ending = context;
	const struct err *e;

	if ((e = session_delete(db, ending->hash)) != NULL)
		return e;
	return audited_change(ending->rq, AUDIT_OF_SESSION, 0, 0);
}

/* Ends a session. An API token ends when it is deleted. */
static const struct err *
api_auth_logout(struct req *rq)
{
	const char *session = auth_session(rq);
	struct ending ending = { .rq = rq };
	const struct err *e;

	audited_nothing(rq);
	if (session != NULL) {
		crypto_sha256(session, strlen(session), ending.hash);
		if ((e = req_transaction(rq, end_body, &ending)) != NULL)
			return e;
	}
	answer_header(rq, "Set-Cookie",
	    AUTH_COOKIE "=; Path=/; Max-Age=0" AUTH_COOKIE_RULES);
	return NULL;
}

static const struct route routes[] = {
	{ .method = METHOD_POST,
	    .path = "/api/auth/session",
	    .role = ROLE_GUEST,
	    .flags = ROUTE_COOKIE,
	    .handler = api_auth_session,
	    .operation = "startSession",
	    .summary = "Start a session with an API token",
	    .doc = "Replaces the browser's previous session. The session has "
		   "the role of the token at most, and ends when the token "
		   "expires or is deleted.",
	    .out = &login_shape,
	    .status = 200,
	    .errors = route_limited },
	{ .method = METHOD_GET,
	    .path = "/api/auth/info",
	    .role = ROLE_GUEST,
	    .handler = api_auth_info,
	    .operation = "getCurrentUser",
	    .summary = "Get the signed-in user",
	    .out = &user_shape,
	    .status = 200 },
	{ .method = METHOD_GET,
	    .path = "/api/auth/logout",
	    .role = ROLE_GUEST,
	    .flags = ROUTE_SAME_ORIGIN | ROUTE_COOKIE,
	    .handler = api_auth_logout,
	    .operation = "logoutByGet",
	    .summary = "End the session",
	    .status = 204 },
	{ .method = METHOD_POST,
	    .path = "/api/auth/logout",
	    .role = ROLE_GUEST,
	    .flags = ROUTE_COOKIE,
	    .handler = api_auth_logout,
	    .operation = "logout",
	    .summary = "End the session",
	    .status = 204 },
	{ .method = METHOD_GET,
	    .path = "/api/auth/tokens",
	    .role = ROLE_GUEST,
	    .query = route_page,
	    .handler = api_token_list,
	    .operation = "listTokens",
	    .summary = "List your API tokens",
	    .out = &api_token_shape,
	    .list = LIST_PAGES,
	    .status = 200 },
	{ .method = METHOD_POST,
	    .path = "/api/auth/tokens",
	    .role = ROLE_GUEST,
	    .in = &api_token_shape,
	    .mode = JSON_CREATE,
	    .handler = api_token_create,
	    .judge = api_token_judge,
	    .operation = "createToken",
	    .summary = "Create an API token; the response is the only one to "
		       "show it",
	    .out = &api_token_shape,
	    .status = 201,
	    .errors = route_limited },
	{ .method = METHOD_GET,
	    .path = "/api/auth/tokens/{id}",
	    .role = ROLE_GUEST,
	    .handler = api_token_show,
	    .operation = "getToken",
	    .summary = "Get one of your API tokens",
	    .out = &api_token_shape,
	    .status = 200 },
	{ .method = METHOD_DELETE,
	    .path = "/api/auth/tokens/{id}",
	    .role = ROLE_GUEST,
	    .flags = ROUTE_GUARDED,
	    .handler = api_token_remove,
	    .operation = "deleteToken",
	    .summary = "Delete one of your API tokens; a token can delete "
		       "itself and tokens with the same or a lower role",
	    .status = 204 },
	ROUTE_END,
};

const struct resource tokens_resource = {
	.tag = "auth",
	.routes = routes,
};
