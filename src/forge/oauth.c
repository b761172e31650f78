/* SPDX-License-Identifier: ISC */
/* OAuth 2.0 (RFC 6749) with PKCE (RFC 7636), as implemented by Git servers. */
#include <string.h>
#include <strings.h>

#include "core/str.h"
#include "forge/inner.h"

#define FORM_MAX ((size_t)64 << 10)
#define TOKEN_MAX 16384
#define LIFE_MAX (INT64_C(10) * 365 * 24 * 3600) /* seconds */

/* A response of the token endpoint, success or error. */
struct grant {
	const char *access;
	const char *refresh;
	const char *type;
	const char *scope;
	int64_t expires_in;
	const char *error;
	const char *description;
};
#define G(m, p) JSON_PATH(struct grant, m, p, .must = false)

static const struct json_path grant_paths[] = {
	G(access, "access_token"),
	G(refresh, "refresh_token"),
	G(type, "token_type"),
	G(scope, "scope"),
	G(expires_in, "expires_in"),
	G(error, "error"),
	G(description, "error_description"),
	JSON_PATH_END,
};

/* Errors that are not about the code or token in the request. */
static const struct {
	const char *error;
	enum err_code code;
} other_errors[] = {
	{ "invalid_client", ERR_CONFIG },
	{ "incorrect_client_credentials", ERR_CONFIG },
	{ "redirect_uri_mismatch", ERR_CONFIG },
	{ "application_suspended", ERR_CONFIG },
	{ "unsupported_grant_type", ERR_CONFIG },
	{ "temporarily_unavailable", ERR_UPSTREAM },
	{ "server_error", ERR_UPSTREAM },
	{ "slow_down", ERR_UPSTREAM },
};

static const char *
scopes(const struct forge *f)
{
	const char *s = f->settings->scopes;

	return s != NULL && s[0] != '\0' ? s : f->ops->oauth.scopes;
}

static bool
is_set(const char *s)
{
	return s != NULL && s[0] != '\0';
}

const struct err *
forge_can_sign_in(const struct forge *f)
{
	const struct settings_gitserver *s = f->settings;
	const struct {
		const char *name;
		bool given;
	} all[] = {
		{ " GITSERVER_CLIENT_ID", is_set(s->client_id) },
		{ " GITSERVER_REDIRECT_URI", is_set(s->redirect_uri) },
		{ " GITSERVER_CLIENT_SECRET",
		    !f->ops->oauth.needs_secret || is_set(s->client_secret) },
	};
	char missing[128] = "";
	size_t i, len = 0;

	if (f->ops->oauth.authorize == NULL)
		return err_public(ERR_CONFIG,
		    "A Git server of type %s does not support sign-in "
		    "(GITSERVER_TYPE).",
		    f->ops->name);
	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		if (all[i].given)
			continue;
		(void)memcpy(missing + len, all[i].name, strlen(all[i].name));
		len += strlen(all[i].name);
	}
	if (len == 0)
		return NULL;
	return err_public(ERR_CONFIG,
	    "Signing in at the Git server requires the settings%.*s.", (int)len,
	    missing);
}

static void
form_add(struct buf *b, struct arena *a, const char *name, const char *value)
{
	if (value != NULL)
		buf_printf(b, "%s%s=%s", b->len == 0 ? "" : "&", name,
		    http_escape(a, value));
}

const char *
forge_authorize_url(const struct forge *f, struct arena *a, const char *state,
    const char *challenge)
{
	const struct settings_gitserver *s = f->settings;
	const char *out;
	struct buf b;

	buf_init(&b, FORM_MAX);
	form_add(&b, a, "client_id", s->client_id);
	form_add(&b, a, "redirect_uri", s->redirect_uri);
	form_add(&b, a, "response_type", "code");
	form_add(&b, a, "scope", scopes(f));
	form_add(&b, a, "state", state);
	form_add(&b, a, "code_challenge", challenge);
	form_add(&b, a, "code_challenge_method", "S256");
	out = arena_printf(a, "%s%s?%s", f->server, f->ops->oauth.authorize,
	    b.data);
	buf_release(&b);
	return out;
}

static bool
is_word_of(const char *list, const char *word, size_t len)
{
	size_t n;

	for (; *list != '\0'; list += n) {
		list += strspn(list, " ,");
		n = strcspn(list, " ,");
		if (n == len && strncmp(list, word, len) == 0)
			return true;
	}
	return false;
}

/* "user" includes "read:user", "repo" includes "repo:status". */
static bool
is_granted(const char *granted, const char *word, size_t len)
{
	const char *colon = memchr(word, ':', len);
	size_t before;

	if (is_word_of(granted, word, len))
		return true;
	if (colon == NULL)
		return false;
	before = (size_t)(colon - word);
	return is_word_of(granted, word, before) ||
	    is_word_of(granted, colon + 1, len - before - 1);
}

static const struct err *
scope_check(const struct forge *f, const struct grant *g)
{
	const char *asked = scopes(f);
	size_t len;

	if (!is_set(g->scope))
		return NULL;
	for (; *asked != '\0'; asked += len) {
		asked += strspn(asked, " ,");
		len = strcspn(asked, " ,");
		if (len > 0 && !is_granted(g->scope, asked, len))
			return err_public(ERR_BAD_REQUEST,
			    "The Git server did not grant the scope %.*s. Sign "
			    "in again and allow everything that is requested.",
			    (int)len, asked);
	}
	return NULL;
}

/* The server's message, with other characters than ASCII text replaced. */
static const char *
clean(struct arena *a, const char *text)
{
	char *out, *p;

	if (text == NULL)
		return "";
	out = arena_printf(a, "%.100s", text);
	for (p = out; *p != '\0'; p++)
		if ((unsigned char)*p < 0x20 || (unsigned char)*p > 0x7e)
			*p = '?';
	return out;
}

static const struct err *
rejected(struct arena *a, const struct grant *g, enum err_code code)
{
	size_t i;

	for (i = 0; i < sizeof(other_errors) / sizeof(other_errors[0]); i++)
		if (strcmp(g->error, other_errors[i].error) == 0)
			code = other_errors[i].code;
	/* Gitea reports unauthorized_client for an invalid code, too. */
	if (is_set(g->description) &&
	    (strstr(g->description, "client secret") != NULL ||
		strstr(g->description, "client id") != NULL))
		code = ERR_CONFIG;
	return err_public(code, "The Git server rejected the request: %s%s%s",
	    clean(a, g->error), is_set(g->description) ? ": " : "",
	    clean(a, g->description));
}

/* Whether the text is valid in a header (RFC 6750, section 2.1, and slightly
 * more). */
static bool
is_token(const char *s)
{
	const char *p;

	if (strlen(s) > TOKEN_MAX)
		return false;
	for (p = s; *p != '\0'; p++)
		if ((unsigned char)*p <= 0x20 || (unsigned char)*p > 0x7e)
			return false;
	return *s != '\0';
}

static const struct err *
token_take(const struct forge *f, const struct grant *g,
    struct forge_token *out)
{
	const struct err *e;
	int64_t life = g->expires_in;

	if (g->access == NULL || !is_token(g->access) ||
	    (g->refresh != NULL && !is_token(g->refresh)))
		return err_public(ERR_UPSTREAM,
		    "The Git server's response contains no token.");
	if (g->type != NULL && strcasecmp(g->type, "bearer") != 0)
		return err_public(ERR_UPSTREAM,
		    "The Git server issued a token of an unknown type.");
	if ((e = scope_check(f, g)) != NULL)
		return e;
	out->access = g->access;
	out->refresh = g->refresh;
	out->scope = g->scope;
	if (life > LIFE_MAX)
		life = LIFE_MAX;
	if (life > 0)
		out->expires_at.ms = time_now_ms() + life * 1000;
	return NULL;
}

/* `code` is the error for a rejected code or token. */
static const struct err *
token_ask(struct forge *f, struct arena *a, struct buf *form,
    enum err_code code, struct forge_token *out)
{
	const struct settings_gitserver *s = f->settings;
	struct grant g = { .access = NULL };
	struct http_response got;
	const struct err *e;

	*out = (struct forge_token){ .access = NULL };
	form_add(form, a, "client_id", s->client_id);
	if (is_set(s->client_secret))
		form_add(form, a, "client_secret", s->client_secret);
	form_add(form, a, "redirect_uri", s->redirect_uri);
	if ((e = buf_check(form)) != NULL)
		return e;
	forge_begin(f);
	if ((e = forge_ask(f, a,
		 &(struct forge_ask){ .method = HTTP_POST,
		     .url = arena_printf(a, "%s%s", f->server,
			 f->ops->oauth.token),
		     .body = form->data,
		     .type = "application/x-www-form-urlencoded",
		     .flags = FORGE_ASK_PLAIN },
		 &got)) != NULL)
		return e;
	if (got.status >= 500 || got.status == 429)
		return forge_judge(f, a, &got);
	if (json_pick(a, grant_paths, got.body, got.len, &g) != NULL)
		return err_public(ERR_UPSTREAM,
		    "The Git server returned %d to a sign-in, without JSON. It "
		    "may not support OAuth 2.0 (Gitea: [oauth2] ENABLED).",
		    got.status);
	if (g.error != NULL)
		return rejected(a, &g, code);
	if (got.status < 200 || got.status > 299)
		return err_public(ERR_UPSTREAM,
		    "The Git server returned %d to a sign-in.", got.status);
	return token_take(f, &g, out);
}

const struct err *
forge_token_get(struct forge *f, struct arena *a, const char *code,
    const char *verifier, struct forge_token *out)
{
	const struct err *e;
	struct buf form;

	*out = (struct forge_token){ .access = NULL };
	if ((e = forge_can_sign_in(f)) != NULL)
		return e;
	buf_init(&form, FORM_MAX);
	form_add(&form, a, "grant_type", "authorization_code");
	form_add(&form, a, "code", code);
	form_add(&form, a, "code_verifier", verifier);
	e = token_ask(f, a, &form, ERR_BAD_REQUEST, out);
	buf_wipe(&form);
	return e;
}

/* Sends an invalid code: if the server knows the client, it rejects the code.
 * Gitea uses the same error for a wrong client, with a different
 * description. */
const struct err *
forge_check_client(struct forge *f, struct arena *a)
{
	static const char verifier[] =
	    "slipway-asks-whether-this-client-is-known-at-all";
	struct forge_token token;
	const struct err *e;

	e = forge_token_get(f, a, "slipway-doctor", verifier, &token);
	if (e == NULL || e->code != ERR_BAD_REQUEST)
		return e;
	if (strstr(e->detail, "unauthorized_client: ") == NULL ||
	    (strcasestr(e->detail, "secret") == NULL &&
		strcasestr(e->detail, "redirect") == NULL))
		return NULL;
	return err_as(e, ERR_CONFIG, e->sys);
}

bool
forge_checks_redirect(const struct forge *f)
{
	return f->ops->oauth.checks_redirect;
}

const struct err *
forge_token_refresh(struct forge *f, struct arena *a, const char *refresh,
    struct forge_token *out)
{
	const struct err *e;
	struct buf form;

	*out = (struct forge_token){ .access = NULL };
	if ((e = forge_can_sign_in(f)) != NULL)
		return e;
	buf_init(&form, FORM_MAX);
	form_add(&form, a, "grant_type", "refresh_token");
	form_add(&form, a, "refresh_token", refresh);
	e = token_ask(f, a, &form, ERR_UNAUTHENTICATED, out);
	buf_wipe(&form);
	return e;
}

const struct err *
forge_token_revoke(struct forge *f, struct arena *a, const char *access)
{
	if (f->ops->oauth.revoke == NULL)
		return NULL;
	forge_begin(f);
	return f->ops->oauth.revoke(f, a, access);
}
