/* SPDX-License-Identifier: ISC */
#include "access/access.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "core/log.h"
#include "core/str.h"
#include "store/gittoken.h"
#include "store/identity.h"

#define MARGIN_MS INT64_C(60000) /* a token that expires sooner is refreshed */
#define WAIT_MS                                                                \
	5000          /* time to wait for another process's
				  * refresh */
#define STORE_MS 4000 /* time to store the result of a refresh */
#define PAUSE_MS 50
/* A server may have issued a new pair and revoked the old one before we give up
 * waiting. With less time left than this, no refresh is started. */
#define REFRESH_MIN_MS 3000
#define PURPOSE_SIZE 64

/* A user's token from the database, decrypted. */
struct user_token {
	struct git_token row;
	char *access;
	char *refresh; /* NULL = none */
};

static void
pause_short(void)
{
	const struct timespec time = { .tv_nsec = PAUSE_MS * 1000000L };

	(void)ppoll(NULL, 0, &time, NULL);
}

/* `sys` of ERR_NOTFOUND: there is a token, but the key does not decrypt it. */
#define NONE_SEALED 1

static const struct err *
none(int64_t user_id, const char *why)
{
	return err_new(ERR_NOTFOUND, "git token of user %lld: %s",
	    (long long)user_id, why);
}

static void
purpose_of(char out[PURPOSE_SIZE], int64_t user_id)
{
	(void)snprintf(out, PURPOSE_SIZE, GITTOKEN_PURPOSE, (long long)user_id);
}

static const struct err *
user_token_open(const struct access *x, struct arena *a, struct user_token *h)
{
	char purpose[PURPOSE_SIZE];
	const struct err *e;

	purpose_of(purpose, h->row.user_id);
	e = keyring_unseal(x->keyring, a, purpose, h->row.access, &h->access);
	if (e == NULL && h->row.refresh.data != NULL)
		e = keyring_unseal(x->keyring, a, purpose, h->row.refresh,
		    &h->refresh);
	return e;
}

/* A token that cannot be decrypted is useless, but a lost key must show in the
 * log. */
static const struct err *
user_token_read(const struct access *x, struct arena *a, int64_t user_id,
    struct user_token *out)
{
	const struct err *e;

	*out = (struct user_token){ .access = NULL };
	if (user_id == 0 || x->forge == NULL || x->keyring == NULL)
		return none(user_id, "no user, or no Git server configured");
	if ((e = gittoken_by_user(x->db, a, user_id, &out->row)) != NULL)
		return e;
	if (!str_eq(out->row.server, forge_server(x->forge)))
		return none(user_id, "belongs to another server");
	if ((e = user_token_open(x, a, out)) != NULL) {
		log_err(e, "decrypting a user's git token");
		return err_number(ERR_NOTFOUND, NONE_SEALED,
		    "git token of user %lld cannot be decrypted",
		    (long long)user_id);
	}
	return NULL;
}

static const struct err *
token_seal(const struct access *x, struct arena *a, int64_t user_id,
    const struct forge_token *t, struct git_token *out)
{
	char purpose[PURPOSE_SIZE];
	const struct err *e;

	*out = (struct git_token){ .user_id = user_id,
		.server = forge_server(x->forge),
		.expires_at = t->expires_at };
	purpose_of(purpose, user_id);
	e = keyring_seal(x->keyring, a, purpose, t->access, &out->access);
	if (e == NULL && t->refresh != NULL)
		e = keyring_seal(x->keyring, a, purpose, t->refresh,
		    &out->refresh);
	return e;
}

bool
access_is_personal(const struct forge *forge)
{
	return forge != NULL && forge_has_api(forge) &&
	    forge_can_sign_in(forge) == NULL;
}

const struct err *
access_put(const struct access *x, struct arena *a, int64_t user_id,
    const struct forge_token *t)
{
	struct git_token row;
	const struct err *e;

	if (x->keyring == NULL)
		return err_public(ERR_CONFIG,
		    "Signing in requires a key to encrypt tokens. Run "
		    "\"slipway-admin key\", then reload slipway-api.");
	if ((e = token_seal(x, a, user_id, t, &row)) != NULL)
		return e;
	return gittoken_put(x->db, &row);
}

/* The old pair is invalid already, so the new one must survive a short outage
 * of the database. */
static const struct err *
result_store(const struct access *x, const struct git_token *row,
    const char *holder)
{
	int64_t end = time_mono_ms() + STORE_MS;
	const struct err *e;

	while ((e = gittoken_refresh_end(x->db, row, holder)) != NULL &&
	    e->code == ERR_UNAVAILABLE && time_mono_ms() < end)
		pause_short();
	if (e != NULL && e->code == ERR_UNAVAILABLE)
		return err_public(ERR_UNAVAILABLE,
		    "The Git server has renewed your access, but storing it "
		    "failed. If this persists, sign in again.");
	return e;
}

/* Handles a token that the server has revoked. */
static const struct err *
user_token_end(const struct access *x, const struct user_token *h,
    enum gittoken_end why)
{
	const struct err *e;
	bool ended;

	e = gittoken_refused(x->db, h->row.user_id, h->row.epoch, why, &ended);
	if (e == NULL)
		log_info("git token of user %lld: rejected by the Git server%s",
		    (long long)h->row.user_id,
		    ended ? "; the user's sessions and API tokens end" : "");
	return e;
}

/* Refreshes the token as the holder of that right. `out` becomes NULL if a
 * newer token is stored already. */
static const struct err *
user_token_refresh(const struct access *x, struct arena *a,
    const struct user_token *h, const char *holder, const char **out)
{
	struct forge_token got;
	struct git_token row;
	const struct err *e;

	*out = NULL;
	e = forge_token_refresh(x->forge, a, h->refresh, &got);
	if (e != NULL && e->code == ERR_UNAUTHENTICATED) {
		e = user_token_end(x, h, GITTOKEN_REFRESH);
		return e != NULL ? e : none(h->row.user_id, "expired");
	}
	if (e != NULL) {
		const struct err *also = gittoken_refresh_cancel(x->db,
		    h->row.user_id, holder);

		if (also != NULL)
			log_err(also, "deleting a git token");
		return e;
	}
	if (got.refresh == NULL) /* RFC 6749, section 6: the old one remains
				  * valid */
		got.refresh = h->refresh;
	if ((e = token_seal(x, a, h->row.user_id, &got, &row)) != NULL)
		return e;
	row.epoch = h->row.epoch;
	e = result_store(x, &row, holder);
	if (e != NULL && e->code == ERR_PRECONDITION)
		return NULL;
	if (e == NULL)
		*out = got.access;
	return e;
}

static const char *
holder_make(struct arena *a)
{
	unsigned char bytes[(GITTOKEN_HOLDER - 1) / 2];

	crypto_random(bytes, sizeof(bytes));
	return crypto_hex(a, bytes, sizeof(bytes));
}

/* Whether the token remains valid for a while. Then there is no need to wait
 * for another process's refresh or for a Git server that is down. */
static bool
still_good(const struct user_token *h, const char *stale)
{
	return !str_eq(h->access, stale) &&
	    (h->row.expires_at.ms == 0 || h->row.expires_at.ms > time_now_ms());
}

static bool
needs_refresh(const struct user_token *h, const char *stale)
{
	return str_eq(h->access, stale) ||
	    (h->row.expires_at.ms != 0 &&
		h->row.expires_at.ms < time_now_ms() + MARGIN_MS);
}

/* Whether the error is the server's, or of our client there, so that no token
 * is lost. */
static bool
is_of_server(const struct err *e)
{
	return e->code == ERR_UPSTREAM || e->code == ERR_UPSTREAM_TIMEOUT ||
	    e->code == ERR_RATE || e->code == ERR_CONFIG;
}

/* Acquires the right to refresh, if there is enough time. */
static const struct err *
refresh_begin(const struct access *x, const struct user_token *h,
    const char *holder)
{
	if (forge_left(x->forge) >= REFRESH_MIN_MS)
		return gittoken_refresh_begin(x->db, h->row.user_id,
		    h->row.epoch, holder);
	return err_public(ERR_UPSTREAM_TIMEOUT,
	    "The Git server is too slow to renew your access. Try again.");
}

/* A single attempt. `out` stays NULL if the row must be read again. */
static const struct err *
fresh_try(const struct access *x, struct arena *a, const struct user_token *h,
    const char *stale, const char **out)
{
	const char *holder;
	const struct err *e;

	*out = NULL;
	if (!needs_refresh(h, stale)) {
		*out = h->access;
		return NULL;
	}
	if (h->refresh == NULL) {
		if (!still_good(h, stale))
			return none(h->row.user_id, "no refresh token");
		*out = h->access;
		return NULL;
	}
	holder = holder_make(a);
	e = refresh_begin(x, h, holder);
	if (e == NULL)
		e = user_token_refresh(x, a, h, holder, out);
	else if (e->code == ERR_CONFLICT || e->code == ERR_PRECONDITION) {
		bool busy = e->code == ERR_CONFLICT;

		if (busy && still_good(h, stale))
			*out = h->access;
		else if (busy)
			pause_short();
		return NULL;
	}
	if (e != NULL && is_of_server(e) && still_good(h, stale)) {
		log_err(e, "refreshing a git token, will try again");
		*out = h->access;
		e = NULL;
	}
	return e;
}

/* The rows of each attempt have an arena of their own, because there may be
 * many. */
static const struct err *
fresh(const struct access *x, struct arena *a, int64_t user_id,
    const char *stale, const char **out)
{
	struct arena *own = arena_open((size_t)1 << 20);
	int64_t end = time_mono_ms() + WAIT_MS;
	const char *found = NULL;
	const struct err *e;
	struct user_token h;

	*out = NULL;
	do {
		arena_clear(own);
		if ((e = user_token_read(x, own, user_id, &h)) != NULL ||
		    (e = fresh_try(x, own, &h, stale, &found)) != NULL)
			goto out;
	} while (found == NULL && time_mono_ms() < end);
	if (found == NULL)
		e = err_public(ERR_UPSTREAM_TIMEOUT,
		    "The Git server has not renewed your access in time. Try "
		    "again.");
	else
		*out = arena_strdup(a, found);
out:
	arena_close(own);
	return e;
}

const struct err *
access_of_user(const struct access *x, struct arena *a, int64_t user_id,
    const char **out)
{
	return fresh(x, a, user_id, NULL, out);
}

const struct err *
access_renew(const struct access *x, struct arena *a, int64_t user_id,
    const char *stale, const char **out)
{
	return fresh(x, a, user_id, stale, out);
}

static const char *
service_token(const struct access *x)
{
	const char *token = x->settings->token;

	return token != NULL && token[0] != '\0' ? token : NULL;
}

/* A client would take 401 for the end of its own session. */
static const struct err *
refused(enum access_as as)
{
	return err_public_number(ERR_UPSTREAM, 401, "%s",
	    as == ACCESS_USER ?
		"The Git server no longer accepts your access; sign in "
		"again." :
		"The Git server rejects the service's token, or requires one. "
		"Sign in at the Git server, or set gitserver.token.");
}

static const struct err *
bound_elsewhere(const struct account *who)
{
	return err_public_number(ERR_UPSTREAM, 401,
	    "Your user is bound to an account at %.200s, which is not the "
	    "configured Git server. Ask an administrator.",
	    who->forge);
}

/* Results that a disabled user gets are not stored for others. */
static bool
is_trusted(const struct account *who)
{
	return who->valid && str_eq(who->status, "active") &&
	    role_of(who->role) >= ROLE_MAINTAINER;
}

static const struct err *
account_read(const struct access *x, struct arena *a, int64_t user_id,
    struct account *out)
{
	const struct err *e;

	*out = (struct account){ .user_id = user_id };
	if (user_id == 0)
		return NULL;
	e = identity_account(x->db, a, user_id, out);
	return e != NULL && e->code == ERR_NOTFOUND ? NULL : e;
}

const struct err *
access_for(const struct access *x, struct arena *a, int64_t user_id,
    struct access_token *out)
{
	const struct err *e;
	struct account who;

	*out = (struct access_token){ .as = ACCESS_ANYBODY };
	if ((e = account_read(x, a, user_id, &who)) != NULL)
		return e;
	out->trusted = user_id == 0 || is_trusted(&who);
	if (who.forge != NULL) {
		out->as = ACCESS_USER;
		if (x->forge == NULL ||
		    strcasecmp(who.forge, forge_server(x->forge)) != 0)
			return bound_elsewhere(&who);
		e = access_of_user(x, a, user_id, &out->text);
		return e != NULL && e->code == ERR_NOTFOUND ?
		    refused(ACCESS_USER) :
		    e;
	}
	if ((out->text = service_token(x)) != NULL) {
		out->as = ACCESS_SERVICE;
		out->trusted = true;
	}
	return NULL;
}

/* Explains that the request had no token. */
static const struct err *
unseen(const struct err *e)
{
	size_t len = strlen(e->detail);

	if (len > 0 && e->detail[len - 1] == '.')
		len--;
	return err_public(ERR_NOTFOUND,
	    "%.*s; the request was anonymous. Sign in at the Git server to see "
	    "private repositories.",
	    (int)len, e->detail);
}

/* Deletes the token if it is still the one that was rejected. */
static const struct err *
account_end(const struct access *x, int64_t user_id, const char *token)
{
	struct arena *own = arena_open((size_t)1 << 20);
	const struct err *e;
	struct user_token h;

	if ((e = user_token_read(x, own, user_id, &h)) == NULL)
		e = str_eq(h.access, token) ?
		    user_token_end(x, &h, GITTOKEN_ACCOUNT) :
		    err_new(ERR_UNAVAILABLE,
			"git token of user %lld: a newer one is stored",
			(long long)user_id);
	arena_close(own);
	return e;
}

static bool
is_of_account(const struct err *e)
{
	return e != NULL &&
	    (e->code == ERR_UNAUTHENTICATED || e->code == ERR_FORBIDDEN);
}

const struct err *
access_confirm(const struct access *x, struct arena *a, int64_t user_id)
{
	struct forge_account account;
	const struct err *e, *also;
	const char *token, *fresh_one;
	const struct err *why;
	struct err room;

	if ((e = access_of_user(x, a, user_id, &token)) != NULL)
		goto out;
	e = forge_whoami(x->forge, a, token, &account);
	if (e != NULL && e->code == ERR_UNAUTHENTICATED) {
		why = err_keep(&room, e);
		e = access_renew(x, a, user_id, token, &fresh_one);
		if (e == NULL) {
			token = fresh_one;
			e = forge_whoami(x->forge, a, token, &account);
		} else if (e->code == ERR_NOTFOUND && e->sys != NONE_SEALED) {
			e = err_wrap(why, "user %lld", (long long)user_id);
		}
	}
	if (!is_of_account(e))
		goto out;
	why = err_keep(&room, e);
	also = account_end(x, user_id, token);
	if (also != NULL && also->code != ERR_NOTFOUND)
		return also;
	return err_wrap(why, "user %lld", (long long)user_id);
out:
	if (e != NULL && e->code == ERR_NOTFOUND && e->sys == NONE_SEALED)
		return err_as(e, ERR_CONFIG, 0);
	return e;
}

/* The server rejected a request; finds out whether it rejects the account as a
 * whole. */
static const struct err *
refusal_judge(const struct access *x, struct arena *a, int64_t user_id,
    const struct err *e)
{
	struct err room;
	const struct err *first = err_keep(&room, e), *why;

	why = access_confirm(x, a, user_id);
	if (why != NULL && why->code == ERR_FORBIDDEN)
		return err_as(why, ERR_UPSTREAM, 403);
	if (is_of_account(why) || first->code == ERR_UNAUTHENTICATED)
		return refused(ACCESS_USER);
	return err_wrap(first, "as user %lld", (long long)user_id);
}

static bool
is_refusal(const struct err *e)
{
	return e != NULL &&
	    (e->code == ERR_UNAUTHENTICATED ||
		(e->code == ERR_UPSTREAM && e->sys == 403));
}

static const struct err *
call_as_user(const struct access *x, struct arena *a, int64_t user_id,
    struct access_token *token, access_ask *ask, void *context)
{
	const struct err *e = ask(x->forge, a, token, context);

	if (e != NULL && e->code == ERR_UNAUTHENTICATED) {
		e = access_renew(x, a, user_id, token->text, &token->text);
		if (e == NULL)
			e = ask(x->forge, a, token, context);
		else if (e->code == ERR_NOTFOUND)
			e = err_as(e, ERR_UNAUTHENTICATED, e->sys);
	}
	return is_refusal(e) ? refusal_judge(x, a, user_id, e) : e;
}

const struct err *
access_call(const struct access *x, struct arena *a, int64_t user_id,
    access_ask *ask, void *context)
{
	struct access_token token;
	const struct err *e;

	if ((e = access_for(x, a, user_id, &token)) != NULL)
		return e;
	if (token.as == ACCESS_USER)
		return call_as_user(x, a, user_id, &token, ask, context);
	e = ask(x->forge, a, &token, context);
	if (e != NULL && e->code == ERR_NOTFOUND && token.as == ACCESS_ANYBODY)
		return unseen(e);
	return e != NULL && e->code == ERR_UNAUTHENTICATED ? refused(token.as) :
							     e;
}
