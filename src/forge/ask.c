/* SPDX-License-Identifier: ISC */
/* A request to the server, and the meaning of its response. */
#include <assert.h>
#include <string.h>

#include "core/num.h"
#include "core/str.h"
#include "core/utf8.h"
#include "forge/inner.h"

#define WORDS 200 /* bytes of the server's own text in a message */
#define LEFT_MIN 100
#define WAIT_MAX 3600 /* seconds */

/* The forms of error messages: GitLab's message may be a list or a map of
 * fields to lists; GitHub has reasons beside the message. */
struct complaint {
	const char *message;
	const char *listed;
	const char *of_field;
	const char *reason;
	const char *description;
	const char *error;
};
#define W(m, p) JSON_PATH(struct complaint, m, p, .must = false)
static const struct json_path complaint_paths[] = {
	W(message, "message"),
	W(listed, "message.*"),
	W(of_field, "message.*.*"),
	W(reason, "errors.*.message"),
	W(description, "error_description"),
	W(error, "error"),
	JSON_PATH_END,
};

int64_t
forge_left(const struct forge *f)
{
	const int64_t all = f->settings->timeout * 1000;
	int64_t left = f->until - time_mono_ms();

	return f->until == 0 || left > all ? all : left;
}

void
forge_begin(struct forge *f)
{
	f->deadline = time_mono_ms() + forge_left(f);
}

void
forge_until(struct forge *f, int64_t when_ms)
{
	f->until = when_ms;
}

const struct err *
forge_ask(struct forge *f, struct arena *a, const struct forge_ask *ask,
    struct http_response *out)
{
	struct http_request rq = { .method = ask->method,
		.url = ask->url,
		.body = ask->body,
		.len = ask->body == NULL ? 0 : strlen(ask->body),
		.type = ask->type,
		.deadline_ms = f->deadline - time_mono_ms(),
		.max = FORGE_BODY };
	const struct http_header *h;
	const struct err *e;
	size_t n = 0;

	if (rq.deadline_ms < LEFT_MIN)
		return err_public(ERR_UPSTREAM_TIMEOUT,
		    "The Git server did not respond in time.");
	if ((ask->flags & FORGE_ASK_PLAIN) == 0)
		for (h = f->ops->header; h->name != NULL; h++)
			rq.header[n++] = *h;
	if (n == 0)
		rq.header[n++] = (struct http_header){ "Accept",
			"application/json" };
	if (ask->access != NULL)
		rq.header[n++] = (struct http_header){ "Authorization",
			arena_printf(a, "Bearer %s", ask->access) };
	assert(n < HTTP_HEADERS);
	if ((e = http_call(f->http, a, &rq, out)) != NULL)
		return e;
	/* A text that contains the token must not get into any message. */
	if (ask->access != NULL && out->status >= 300 &&
	    strstr(out->body, ask->access) != NULL) {
		out->body = "";
		out->len = 0;
	}
	return NULL;
}

const char *
forge_words(struct arena *a, const struct http_response *got)
{
	struct complaint c = { .message = NULL };
	const char *text;
	char *out, *p;

	if (got->type == NULL || strstr(got->type, "json") == NULL ||
	    json_pick(a, complaint_paths, got->body, got->len, &c) != NULL)
		return "";
	text = c.message != NULL  ? c.message :
	    c.listed != NULL      ? c.listed :
	    c.of_field != NULL    ? c.of_field :
	    c.description != NULL ? c.description :
	    c.error != NULL       ? c.error :
				    "";
	if (c.reason != NULL)
		text = arena_printf(a, "%s: %s", text, c.reason);
	out = arena_strndup(a, text, strnlen(text, WORDS));
	for (p = out + strlen(out); p > out && !utf8_valid(out, strlen(out));)
		*--p = '\0';
	for (p = out; *p != '\0'; p++)
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			*p = ' ';
	return out;
}

/* The limit is used up until a time that the server states by its own clock. */
static bool
is_used_up(const struct http_response *got)
{
	return str_eq(http_header(got, "x-ratelimit-remaining"), "0");
}

/* Whether the server's rate limit is exceeded, in any of its forms. */
static bool
is_limit(const struct http_response *got)
{
	return got->status == 429 ||
	    (got->status == 403 &&
		(http_retry_after(got) >= 0 || is_used_up(got)));
}

/* Seconds to wait; 0 = the server does not say. */
static int
wait_of(const struct http_response *got)
{
	const char *reset = http_header(got, "x-ratelimit-reset");
	int64_t wait = http_retry_after(got), now = http_date(got);

	if (wait < 0 && is_used_up(got) && reset != NULL && now != 0 &&
	    num_parse(reset, 1, NUM_SAFE, &wait))
		wait -= now / 1000;
	if (wait < 0)
		return 0;
	return wait > WAIT_MAX ? WAIT_MAX : (int)wait;
}

const struct err *
forge_judge(struct forge *f, struct arena *a, const struct http_response *got)
{
	const char *words = forge_words(a, got);
	const char *colon = *words == '\0' ? "" : ": ";

	(void)f;
	if (got->status >= 200 && got->status < 300)
		return str_eq(got->type, "text/html") ?
		    err_public_number(ERR_UPSTREAM, got->status,
			"The Git server returned an HTML page instead of data "
			"(%d)",
			got->status) :
		    NULL;
	if (is_limit(got))
		return err_public_number(ERR_RATE, wait_of(got),
		    "The Git server's rate limit is exceeded (%d)%s%s",
		    got->status, colon, words);
	if (got->status == 401)
		return err_public(ERR_UNAUTHENTICATED,
		    "The Git server rejected the token (401)%s%s", colon,
		    words);
	if (got->status == 404)
		return err_public(ERR_NOTFOUND,
		    "The Git server has no such resource, or the token has no "
		    "access to it (404)%s%s",
		    colon, words);
	return err_public_number(ERR_UPSTREAM, got->status,
	    "The Git server returned %d%s%s", got->status, colon, words);
}

/* Escapes every segment; keeps the slashes. */
static const char *
path_escape(struct arena *a, const char *path)
{
	const char *out = "";
	size_t len;

	for (;; path += len + 1) {
		len = strcspn(path, "/");
		out = arena_printf(a, "%s%s", out,
		    http_escape(a, arena_strndup(a, path, len)));
		if (path[len] == '\0')
			return out;
		out = arena_printf(a, "%s/", out);
	}
}

const char *
forge_url(const struct forge *f, struct arena *a, const char *form,
    const struct forge_repo *repo, const char *branch, const char *hash)
{
	const struct {
		const char *name;
		const char *value;
	} all[] = {
		{ "{path}", repo == NULL ? NULL : path_escape(a, repo->path) },
		{ "{project}",
		    repo == NULL ? NULL : http_escape(a, repo->path) },
		{ "{id}",
		    repo == NULL || repo->id == NULL ?
			NULL :
			http_escape(a, repo->id) },
		{ "{branch}", branch == NULL ? NULL : http_escape(a, branch) },
		{ "{hash}", hash == NULL ? NULL : http_escape(a, hash) },
	};
	const char *out = f->api;
	size_t len, i;

	while (*form != '\0') {
		len = strcspn(form, "{");
		out = arena_printf(a, "%s%.*s", out, (int)len, form);
		form += len;
		for (i = 0; *form != '\0' && i < sizeof(all) / sizeof(all[0]);
		     i++) {
			if (!str_starts(form, all[i].name))
				continue;
			assert(all[i].value != NULL);
			out = arena_printf(a, "%s%s", out, all[i].value);
			form += strlen(all[i].name);
			break;
		}
	}
	return out;
}
