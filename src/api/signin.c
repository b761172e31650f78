/* SPDX-License-Identifier: ISC */
/* Sign-in at the Git server: OAuth 2.0 authorization code (RFC 6749) with PKCE
 * (RFC 7636), following RFC 9700. */
#include <string.h>

#include "api/forge.h"
#include "api/login.h"
#include "api/resources.h"
#include "core/log.h"
#include "core/str.h"
#include "store/session.h"
#include "web/admission.h"
#include "web/audited.h"
#include "web/auth.h"

/* The cookie of a pending sign-in. Its name ends in the first digits of the
 * state's hash, so that concurrent sign-ins do not conflict. */
#define BROWSER_COOKIE "__Host-slipway-signin-"
#define COOKIE_DIGITS 16
#define GIT_SERVER "X-Git-Server" /* its name, for the button to sign in */
#define BEGUN_MAX 8               /* pending sign-ins per browser */
/* Minimum time in ms that must be left for the Git server. The limit covers all
 * its requests and the wait for a worker, because the client must get a
 * response within ten seconds. */
#define LEFT_MIN 500
#define RETURN_MS 2000 /* time to revoke a token */

struct login_address {
	const char *url;
	const char *state;
};
struct login_request {
	const char *code;
	const char *state;
	const char *iss; /* RFC 9207; NULL = not sent */
};

#define A(m, ...) FIELD(struct login_address, m, FIELD_OUT, __VA_ARGS__)
#define R(m, ...)                                                              \
	FIELD(struct login_request, m, FIELD_IN | FIELD_MUST | FIELD_LINE,     \
	    __VA_ARGS__)

static const struct field login_address_fields[] = {
	A(url, .doc = "URL that the browser opens to sign in."),
	A(state,
	    .doc = "One-time value that the Git server returns with the "
		   "code."),
	FIELD_END,
};
static const struct shape login_address_shape = {
	.name = "LoginAddress",
	.fields = login_address_fields,
	.size = sizeof(struct login_address),
	.doc = "URL to start a sign-in.",
};

static const struct field login_request_fields[] = {
	R(code, .min = 1, .max = 1000,
	    .doc = "Authorization code from the Git "
		   "server."),
	R(state, .min = 1, .max = 100,
	    .doc = "State from the Git server's "
		   "redirect."),
	FIELD(struct login_request, iss, FIELD_IN | FIELD_NULL | FIELD_LINE,
	    .max = 1000,
	    .doc = "Parameter \"iss\" from the redirect (RFC 9207), if "
		   "present. A value that does not belong to the Git server is "
		   "rejected."),
	FIELD_END,
};
static const struct shape login_request_shape = {
	.name = "LoginRequest",
	.fields = login_request_fields,
	.size = sizeof(struct login_request),
	.doc = "Parameters with which the Git server redirected the browser.",
};

/* A sign-in in progress. */
struct work {
	struct req *rq;
	const struct forge_token *token;
	const struct forge_account *account;
	struct login login;
	struct user user;
};

static const struct err *
check_ready(const struct req *rq)
{
	const struct err *e;

	if (rq->unready != NULL)
		return rq->unready;
	if ((e = login_allowed(rq)) != NULL)
		return e;
	if (rq->access->forge == NULL)
		return gitserver_missing(rq, "Signing in by the Git server", 3);
	if (rq->keyring == NULL)
		return err_public(ERR_CONFIG,
		    "Signing in requires a key to encrypt tokens. Run "
		    "\"slipway-admin key\", then reload slipway-api.");
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

/* The size of a header field is limited, and abandoned sign-ins leave their
 * cookies behind. Browsers send the oldest first (RFC 6265bis, section 5.8.3);
 * those are deleted. */
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

/* Stores a sign-in that begins, and binds it to the browser by a cookie. */
static const struct err *
signin_begin(struct req *rq, const char *state, const char *verifier)
{
	char browser[CRYPTO_TOKEN_MAX];
	char state_hash[CRYPTO_HASH_HEX], browser_hash[CRYPTO_HASH_HEX];
	struct signin s = { .state_hash = state_hash,
		.browser_hash = browser_hash };
	const struct err *e;

	crypto_token("", browser);
	crypto_sha256(state, strlen(state), state_hash);
	crypto_sha256(browser, strlen(browser), browser_hash);
	if ((e = keyring_seal(rq->keyring, rq->a,
		 arena_printf(rq->a, SIGNIN_PURPOSE, state_hash), verifier,
		 &s.verifier)) != NULL ||
	    (e = signin_insert(rq->db, &s)) != NULL)
		return e;
	cookies_limit(rq);
	answer_header(rq, "Set-Cookie", "%s=%s; Path=/; Max-Age=%d%s",
	    cookie_name(rq->a, state_hash), browser, SIGNIN_SECONDS,
	    AUTH_COOKIE_RULES);
	return NULL;
}

static const struct err *
api_auth_url(struct req *rq)
{
	char state[CRYPTO_TOKEN_MAX], verifier[CRYPTO_TOKEN_MAX];
	struct login_address address = { .state = state };
	const struct err *e;

	if ((e = check_ready(rq)) != NULL)
		return e;
	crypto_token("", state);
	crypto_token("", verifier);
	/* HEAD only says whether a browser can sign in here. */
	if (strcmp(rq->in[IN_METHOD], "HEAD") != 0 &&
	    (e = signin_begin(rq, state, verifier)) != NULL)
		return e;
	answer_header(rq, GIT_SERVER, "%s",
	    str_visible(rq->a, forge_title(rq->access->forge, rq->a)));
	address.url = forge_authorize_url(rq->access->forge, rq->a, state,
	    crypto_challenge(rq->a, verifier));
	answer_item(rq, &login_address_shape, &address, 0);
	return NULL;
}

/* RFC 9207: the response must come from the server that got the request.
 * Servers name themselves with a slash or a path after their address. */
static const struct err *
check_issuer(const struct req *rq, const char *issuer)
{
	const char *server = forge_server(rq->access->forge);
	size_t len = strlen(server);

	if (issuer == NULL ||
	    (strncmp(issuer, server, len) == 0 &&
		(issuer[len] == '\0' || issuer[len] == '/')))
		return NULL;
	return err_public(ERR_BAD_REQUEST,
	    "The sign-in response comes from a different server than the "
	    "request was sent to.");
}

/* Takes the pending sign-in and decrypts its verifier. */
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
		return err_public(ERR_BAD_REQUEST,
		    "This sign-in was started in another browser, is older "
		    "than ten minutes, or has been used. Start again.");
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
	const struct err *e;

	if ((e = admission_account(db, rq, forge_server(rq->access->forge),
		 w->account, &w->user)) != NULL)
		return e;
	if ((e = access_put(rq->access, rq->a, w->user.id, w->token)) != NULL)
		return e;
	if ((e = login_save(rq, &w->login, w->user.id, 0)) != NULL)
		return e;
	rq->who.user_id = w->user.id;
	rq->who.username = w->user.username;
	return audited_change(rq, AUDIT_OF_SESSION, 0, 0);
}

/* Two concurrent first sign-ins of one account create its user once: the second
 * one finds it. */
static const struct err *
begin(struct work *w)
{
	const struct err *e = req_transaction(w->rq, begin_body, w);

	if (e != NULL && e->code == ERR_CONFLICT)
		e = req_transaction(w->rq, begin_body, w);
	return e;
}

/* Creates the session for an authenticated account. */
static const struct err *
session_begin(struct req *rq, const struct forge_token *token,
    const struct forge_account *account)
{
	struct work w = { .rq = rq, .token = token, .account = account };
	const struct err *e;

	login_init(rq, &w.login);
	if ((e = begin(&w)) != NULL)
		return e;
	rq->who_text = w.user.username;
	login_answer(rq, &w.login, &w.user);
	return NULL;
}

/* A client would take 401 for the end of its own session. */
static const struct err *
check_account(const struct err *e, const struct forge_account *account)
{
	if (e != NULL && e->code == ERR_UNAUTHENTICATED)
		return err_public(ERR_UPSTREAM,
		    "The Git server rejected the token that it had just "
		    "issued.");
	if (e != NULL && e->code == ERR_NOTFOUND)
		return err_public(ERR_UPSTREAM,
		    "The Git server issued a token, but its API did not return "
		    "the account (404). Check GITSERVER_TYPE and "
		    "gitserver.api_url.");
	if (e == NULL && !str_matches(account->id, "[0-9]{1,20}"))
		return err_public(ERR_UPSTREAM,
		    "The Git server did not return the id of the account.");
	return e;
}

/* Exchanges the code for a token and reads the account. */
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

/* Revokes an unused token, if the server supports that. */
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
		log_err(e, "revoking the token of a rejected sign-in");
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
		log_info("%s: account %s of %s signed in: %s", rq->request_id,
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
	if ((e = login_same_origin(rq)) != NULL ||
	    (e = check_issuer(rq, sent->iss)) != NULL)
		return e;
	if (left < LEFT_MIN)
		return err_public(ERR_UPSTREAM_TIMEOUT,
		    "The Git server is still busy with earlier sign-ins. Send "
		    "the same request again.");
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
	    .summary = "Get the URL to sign in at the Git server",
	    .doc =
		"Binds the sign-in to this browser with the cookie "
		"__Host-slipway-signin-…. Each sign-in has its own cookie, so "
		"several windows can sign in at once. Send the browser to the "
		"url within ten minutes. The Git server redirects it to "
		"gitserver.redirect_uri with code and state, or, if the user "
		"or the server rejects the sign-in, with error and "
		"error_description; then show these and start again. HEAD "
		"starts no sign-in: its status says whether GET can. The header "
		"X-Git-Server names the Git server for people, as in Gitea "
		"(git.example.org).",
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
	    .summary = "Start a session with the code from the Git server",
	    .doc = "Send it from the browser that requested the url. A sign-in "
		   "can be tried only once; after a failure, request a new "
		   "url. Each sign-in creates a new session that replaces the "
		   "browser's previous one. The response and the cookie "
		   "__Host-slipway contain its token.",
	    .out = &login_shape,
	    .status = 200,
	    .errors = signing },
	ROUTE_END,
};

const struct resource signin_resource = {
	.tag = "auth",
	.about = "Sessions, and API tokens for programs.",
	.routes = routes,
};
