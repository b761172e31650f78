/* SPDX-License-Identifier: ISC */
/* Signing in by the Git server: OAuth 2.0 authorization code (RFC 6749) with
 * PKCE (RFC 7636), after RFC 9700. */
#include <string.h>

#include "api/admission.h"
#include "api/auth.h"
#include "api/forge.h"
#include "api/resources.h"
#include "api/shapes.h"
#include "core/log.h"
#include "core/str.h"
#include "store/session.h"

/* One for each sign-in that was begun, so that none is in another's way: its
 * name ends in the first digits of the state's hash. */
#define BROWSER_COOKIE "__Host-slipway-signin-"
#define COOKIE_DIGITS 16
#define BEGUN_MAX 8 /* that a browser is to keep */
/* For all that is asked of the Git server, with the wait for a worker: the
 * client is to have its answer within ten seconds. */
#define LEFT_MIN 500
#define RETURN_MS 2000 /* for giving back a token */

/* A sign-in at work. */
struct work {
	struct req *rq;
	const struct forge_token *token;
	const struct forge_account *account;
	const char *hash;   /* of the new session */
	const char *before; /* of the browser's last one; NULL */
	struct user user;
	struct when expires_at;
};

static const struct err *
check_ready(const struct req *rq)
{
	if (rq->unready != NULL)
		return rq->unready;
	/* A name would be one person's here and another's there. */
	if (rq->settings->auth.remote_user)
		return err_tell(ERR_UNAVAILABLE,
		    "Here nginx says who you are (auth.remote_user); nobody "
		    "signs in by the Git server beside it.");
	if (rq->access->forge == NULL)
		return gitserver_missing(rq, "Signing in by the Git server", 3);
	if (rq->keyring == NULL)
		return err_tell(ERR_UNAVAILABLE,
		    "Signing in needs a key that seals the Git server's "
		    "tokens: run \"slipway-admin key\", then reload "
		    "slipway-api.");
	return forge_can_sign_in(rq->access->forge);
}

static const char *
cookie_name(struct arena *a, const char *state_hash)
{
	return arena_printf(a, BROWSER_COOKIE "%.*s", COOKIE_DIGITS,
	    state_hash);
}

static void
cookie_end(struct req *rq, const char *name)
{
	answer_header(rq, "Set-Cookie", "%s=; Path=/; Max-Age=0%s", name,
	    AUTH_COOKIE_RULES);
}

/* A header field has only so much room, and sign-ins are given up without a
 * word.  Browsers send the oldest first (RFC 6265bis 5.8.3): those go. */
static void
cookies_limit(struct req *rq)
{
	const size_t skip = strlen(BROWSER_COOKIE);
	const char *at = rq->in[IN_COOKIE], *name[BEGUN_MAX];
	size_t had = 0, kept = 0, i;

	for (; at != NULL && (at = strstr(at, BROWSER_COOKIE)) != NULL;
	     at += skip) {
		if (strspn(at + skip, "0123456789abcdef") != COOKIE_DIGITS)
			continue;
		if (kept < BEGUN_MAX)
			name[kept++] = cookie_name(rq->a, at + skip);
		had++;
	}
	for (i = 0; i < kept && had - i >= BEGUN_MAX; i++)
		cookie_end(rq, name[i]);
}

static const struct err *
api_auth_url(struct req *rq)
{
	char state[CRYPTO_TOKEN_MAX], verifier[CRYPTO_TOKEN_MAX];
	char browser[CRYPTO_TOKEN_MAX];
	char state_hash[CRYPTO_HASH_HEX], browser_hash[CRYPTO_HASH_HEX];
	struct signin s = { .state_hash = state_hash,
		.browser_hash = browser_hash };
	struct login_address address = { .state = state };
	const struct err *e;

	if ((e = check_ready(rq)) != NULL)
		return e;
	crypto_token("", state);
	crypto_token("", verifier);
	crypto_token("", browser);
	crypto_sha256(state, strlen(state), state_hash);
	crypto_sha256(browser, strlen(browser), browser_hash);
	if ((e = keyring_seal(rq->keyring, rq->a,
		 arena_printf(rq->a, SIGNIN_PURPOSE, state_hash), verifier,
		 &s.verifier)) != NULL ||
	    (e = signin_insert(rq->db, &s)) != NULL)
		return e;
	address.url = forge_authorize_url(rq->access->forge, rq->a, state,
	    crypto_challenge(rq->a, verifier));
	cookies_limit(rq);
	answer_header(rq, "Set-Cookie", "%s=%s; Path=/; Max-Age=%d%s",
	    cookie_name(rq->a, state_hash), browser, SIGNIN_SECONDS,
	    AUTH_COOKIE_RULES);
	answer_item(rq, &login_address_shape, &address, 0);
	return NULL;
}

/* RFC 9207: who answers must be whom we asked.  Servers name themselves with a
 * slash or a path behind their address. */
static const struct err *
check_issuer(const struct req *rq, const char *issuer)
{
	const char *server = forge_server(rq->access->forge);
	size_t len = strlen(server);

	if (issuer == NULL ||
	    (strncmp(issuer, server, len) == 0 &&
		(issuer[len] == '\0' || issuer[len] == '/')))
		return NULL;
	return err_tell(ERR_BAD_REQUEST,
	    "The answer is of another server than the one that was asked to "
	    "sign you in.");
}

/* Takes the sign-in that was begun, and opens its verifier. */
static const struct err *
verifier_take(struct req *rq, const char *state_hash, char **out)
{
	const char *browser = auth_cookie(rq, cookie_name(rq->a, state_hash));
	char browser_hash[CRYPTO_HASH_HEX];
	const struct err *e;
	struct signin s;

	*out = NULL;
	if (browser == NULL)
		browser = "";
	crypto_sha256(browser, strlen(browser), browser_hash);
	e = signin_take(rq->db, rq->a, state_hash, browser_hash, &s);
	if (e != NULL && e->code == ERR_NOTFOUND)
		return err_tell(ERR_BAD_REQUEST,
		    "This sign-in was not begun in this browser, is older than "
		    "ten minutes, or was used already: begin again.");
	if (e != NULL)
		return e;
	return keyring_unseal(rq->keyring, rq->a,
	    arena_printf(rq->a, SIGNIN_PURPOSE, state_hash), s.verifier, out);
}

static const struct err *
begin_body(struct db *db, void *context)
{
	struct work *w = context;
	struct req *rq = w->rq;
	const struct session_term term = {
		.idle = rq->settings->auth.session_idle,
		.max = rq->settings->auth.session_max,
	};
	const struct err *e;

	if ((e = admission_account(db, rq, forge_server(rq->access->forge),
		 w->account, &w->user)) != NULL)
		return e;
	if ((e = access_put(rq->access, rq->a, w->user.id, w->token)) != NULL)
		return e;
	if (w->before != NULL && (e = session_delete(db, w->before)) != NULL)
		return e;
	return session_insert(db, w->user.id, w->hash, &term, &w->expires_at);
}

/* Two first sign-ins of one user at once make the user once: the second of them
 * finds it there. */
static const struct err *
begin(struct work *w)
{
	const struct err *e = db_transaction(w->rq->db, begin_body, w);

	if (e != NULL && e->code == ERR_CONFLICT)
		e = db_transaction(w->rq->db, begin_body, w);
	return e;
}

/* Makes the session for an account that has proved to be it. */
static const struct err *
session_begin(struct req *rq, const struct forge_token *token,
    const struct forge_account *account)
{
	char secret[CRYPTO_TOKEN_MAX], hash[CRYPTO_HASH_HEX];
	char before[CRYPTO_HASH_HEX];
	const char *last = auth_cookie(rq, AUTH_COOKIE);
	struct work w = { .rq = rq,
		.token = token,
		.account = account,
		.hash = hash };
	struct login login = { .token = secret };
	const struct err *e;

	if (last != NULL) {
		crypto_sha256(last, strlen(last), before);
		w.before = before;
	}
	crypto_token(AUTH_SESSION, secret);
	crypto_sha256(secret, strlen(secret), hash);
	if ((e = begin(&w)) != NULL)
		return e;
	rq->who_text = w.user.username;
	login.expires_at = w.expires_at;
	login.user = (struct list){ .items = &w.user, .n = 1 };
	answer_header(rq, "Set-Cookie",
	    AUTH_COOKIE "=%s; Path=/; Max-Age=%lld" AUTH_COOKIE_RULES, secret,
	    (long long)rq->settings->auth.session_max);
	answer_item(rq, &login_shape, &login, 0);
	return NULL;
}

/* To the client 401 would mean another thing. */
static const struct err *
check_account(const struct err *e, const struct forge_account *account)
{
	if (e != NULL && e->code == ERR_UNAUTHENTICATED)
		return err_tell(ERR_UPSTREAM,
		    "The Git server refused the token that it had just given.");
	if (e != NULL && e->code == ERR_NOTFOUND)
		return err_tell(ERR_UPSTREAM,
		    "The Git server gave a token, but nothing at its interface "
		    "says whose (404): see GITSERVER_TYPE and "
		    "gitserver.api_url.");
	if (e == NULL && !str_matches(account->id, "[0-9]{1,20}"))
		return err_tell(ERR_UPSTREAM,
		    "The Git server did not say which account signed in.");
	return e;
}

/* From the code to the account that signed in. */
static const struct err *
exchange(struct req *rq, const char *code, const char *verifier,
    struct forge_token *token, struct forge_account *account)
{
	struct forge *forge = rq->access->forge;
	const struct err *e;

	*account = (struct forge_account){ .id = NULL };
	e = forge_token_get(forge, rq->a, code, verifier, token);
	if (e != NULL)
		return e;
	e = forge_whoami(forge, rq->a, token->access, account);
	return check_account(e, account);
}

/* Nobody will use it: it is given back, where that can be done. */
static void
token_return(struct req *rq, const struct forge_token *token)
{
	struct forge *forge = rq->access->forge;
	const struct err *e;

	if (token->access == NULL)
		return;
	forge_until(forge, time_mono_ms() + RETURN_MS);
	e = forge_token_revoke(forge, rq->a, token->access);
	if (e != NULL)
		log_err(e, "token of a sign-in that was refused");
}

static const struct err *
login_try(struct req *rq, const struct login_request *sent, int64_t until)
{
	struct forge *forge = rq->access->forge;
	char state_hash[CRYPTO_HASH_HEX];
	struct forge_token token;
	struct forge_account account;
	const struct err *e;
	char *verifier;

	crypto_sha256(sent->state, strlen(sent->state), state_hash);
	if ((e = verifier_take(rq, state_hash, &verifier)) != NULL)
		return e;
	forge_until(forge, until);
	e = exchange(rq, sent->code, verifier, &token, &account);
	if (e == NULL) {
		e = session_begin(rq, &token, &account);
		log_info("%s: account %s of %s signs in: %s", rq->request_id,
		    account.id, forge_server(forge),
		    e == NULL ? rq->who_text : e->msg);
	}
	if (e != NULL)
		token_return(rq, &token);
	else
		cookie_end(rq, cookie_name(rq->a, state_hash));
	forge_until(forge, 0);
	return e;
}

static const struct err *
api_auth_login(struct req *rq)
{
	const struct login_request *sent = rq->body;
	int64_t left = rq->settings->gitserver.timeout * 1000 - req_waited(rq);
	const struct err *e;

	if ((e = check_ready(rq)) != NULL)
		return e;
	if ((rq->in[IN_ORIGIN] != NULL || rq->in[IN_SEC_FETCH_SITE] != NULL) &&
	    !auth_same_origin(rq))
		return err_tell(ERR_FORBIDDEN,
		    "A page of this service itself must end the sign-in.");
	if ((e = check_issuer(rq, sent->iss)) != NULL)
		return e;
	if (left < LEFT_MIN)
		return err_tell(ERR_UPSTREAM_TIMEOUT,
		    "The Git server did not answer those in time who signed in "
		    "before: send the same again.");
	return login_try(rq, sent, time_mono_ms() + left);
}

static const enum err_code signing[] = { ERR_FORBIDDEN, ERR_CONFLICT, ERR_RATE,
	ERR_UPSTREAM, ERR_UPSTREAM_TIMEOUT, ERR__MAX };

static const struct route routes[] = {
	{ .method = METHOD_GET,
	    .path = "/api/auth/url",
	    .flags = ROUTE_COOKIE,
	    .handler = api_auth_url,
	    .operation = "getLoginAddress",
	    .summary = "Where to sign in at the Git server",
	    .doc =
		"Binds the sign-in to this browser by the cookie "
		"__Host-slipway-signin-…, one for each sign-in, so that "
		"several windows may sign in at once. Send the browser to "
		"the url within ten minutes; it comes back to gitserver.redirect_uri with "
		"code and state, or with error and error_description where "
		"the user or the Git server refused: then show these, and "
		"begin again; there is nothing to send here.",
	    .out = &login_address_shape,
	    .status = 200,
	    .errors = route_limited },
	{ .method = METHOD_POST,
	    .path = "/api/auth/login",
	    .pool = POOL_SLOW,
	    .flags = ROUTE_COOKIE,
	    .in = &login_request_shape,
	    .mode = JSON_CREATE,
	    .handler = api_auth_login,
	    .operation = "login",
	    .summary = "Begin a session with the Git server's code",
	    .doc = "From the browser that asked for the url. A sign-in can be "
		   "tried once: whatever comes of it, the next one begins at "
		   "the url. The session is new each time and takes the place "
		   "of the browser's last one; its token is in the answer and "
		   "in the cookie __Host-slipway.",
	    .out = &login_shape,
	    .status = 200,
	    .errors = signing },
	ROUTE_END,
};

const struct resource signin_resource = {
	.tag = "auth",
	.about = "Signing in, and tokens for programs.",
	.routes = routes,
};
