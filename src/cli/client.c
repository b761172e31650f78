/* SPDX-License-Identifier: ISC */
#include "cli/client.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/str.h"

#define DEADLINE_MS (INT64_C(60) * 1000)
#define BODY_MAX ((size_t)8 << 20)
#define PATH_MAX_LEN ((size_t)8 << 10)
#define PAGE 100
#define SOON_S 60 /* a longer Retry-After means that someone has to act */
/* Pauses before a request is repeated. */
static const int repeat_s[] = { 1, 3 };
#define REPEATS (sizeof(repeat_s) / sizeof(repeat_s[0]))

/* What to try after an error, by its code.  The text of the others says it. */
static const struct {
	enum err_code code;
	const char *text;
} hints[] = {
	{ ERR_UNAUTHENTICATED,
	    "Sign in with \"slipway auth login\"; \"slipway auth status\" "
	    "tests a token." },
	{ ERR_LOCKED,
	    "\"slipway unlock\" removes the lock, if you are allowed to." },
	{ ERR_RATE, "Wait a moment, then try again." },
	{ ERR_UNAVAILABLE, "Try again later." },
	{ ERR_UPSTREAM_TIMEOUT, "Try again later." },
	{ ERR_INTERNAL,
	    "The administrator finds the cause in the log by the request "
	    "id." },
};

static bool
is_dumb(void)
{
	const char *term = getenv("TERM");

	return term == NULL || *term == '\0' || strcmp(term, "dumb") == 0;
}

void
client_init(struct client *c, struct command_call *call)
{
	const struct client_settings *settings = call->settings;
	const char *no_color = getenv("NO_COLOR");

	*c = (struct client){ .call = call, .a = call->a };
	c->json = settings->json;
	c->table = isatty(STDOUT_FILENO) != 0;
	c->color = c->table && !is_dumb() &&
	    (no_color == NULL || *no_color == '\0');
	c->progress = isatty(STDERR_FILENO) != 0 && !is_dumb();
}

void
client_release(struct client *c)
{
	http_close(c->http);
	c->http = NULL;
}

const struct err *
client_sign_in(struct client *c)
{
	const struct client_settings *settings = c->call->settings;
	const struct err *e;

	if (c->host.url == NULL &&
	    (e = host_choose(c->a, settings->host, &c->host)) != NULL)
		return e;
	if ((e = host_token(c->a, &c->host)) != NULL)
		return e;
	if (c->host.token == NULL)
		return err_public(ERR_UNAUTHENTICATED, "not signed in to %s",
		    c->host.url);
	if (str_has_control(c->host.token))
		return err_public(ERR_CONFIG,
		    "the token for %s contains control characters",
		    c->host.url);
	return NULL;
}

static const struct err *
client_open(struct client *c)
{
	const bool here = host_is_here(c->host.url);
	const struct http_options options = { .tls_ca = c->host.cacert,
		.agent = "slipway/" SLIPWAY_VERSION,
		.allow_http = here,
		.direct = here };

	return c->http != NULL ? NULL : http_open(&options, &c->http);
}

/* --- errors */

static const struct json_path problem_paths[] = {
	JSON_PATH(struct client_problem, request_id, "requestId"),
	JSON_PATH(struct client_problem, error, "error"),
	JSON_PATH_END,
};
static const struct json_path fault_paths[] = {
	JSON_PATH(struct client_fault, pointer, "pointer"),
	JSON_PATH(struct client_fault, detail, "detail"),
	JSON_PATH_END,
};
struct sentence {
	const char *code;
	const char *title;
	const char *detail;
};
static const struct json_path sentence_paths[] = {
	JSON_PATH(struct sentence, code, "code"),
	JSON_PATH(struct sentence, title, "title"),
	JSON_PATH(struct sentence, detail, "detail"),
	JSON_PATH_END,
};

/* The error of that name in the contract, else by the class of the status.  A
 * method that a route does not support is no error of this command line. */
static enum err_code
code_of(const char *name, int status)
{
	int i;

	for (i = 0; name != NULL && i < ERR__MAX; i++)
		if (str_eq(err_kinds[i].name, name))
			return i == ERR_METHOD ? ERR_BAD_REQUEST :
						 (enum err_code)i;
	return status < 500 ? ERR_INVALID : ERR_UPSTREAM;
}

/* The text of the service names no object. */
static const char *
missing(const struct client *c, const char *path)
{
	static const char prefix[] = "/api/deployments/";
	const char *id = path + sizeof(prefix) - 1;

	if (!str_starts(path, prefix))
		return err_kinds[ERR_NOTFOUND].text;
	return arena_printf(c->a, "There is no deployment %.*s.",
	    (int)strcspn(id, "/?"), id);
}

/* Whether the service is probably unavailable for a short time only. */
static bool
is_away(const struct http_response *r)
{
	return r->status == 503 && http_retry_after(r) <= SOON_S;
}

static const struct err *
problem_read(struct client *c, const char *path, const struct http_response *r)
{
	struct sentence s = { .code = NULL };
	struct client_problem *p = &c->problem;

	p->passes = is_away(r);
	if (json_pick(c->a, sentence_paths, r->body, r->len, &s) != NULL ||
	    json_pick(c->a, problem_paths, r->body, r->len, p) != NULL ||
	    json_pick_member(c->a, "errors", fault_paths,
		sizeof(struct client_fault), r->body, r->len,
		&p->errors) != NULL ||
	    (s.detail == NULL && s.title == NULL))
		return err_public(ERR_UPSTREAM,
		    "%s responded with status %d and no explanation: is it "
		    "slipway?",
		    c->host.url, r->status);
	if (str_eq(s.detail, err_kinds[ERR_NOTFOUND].text))
		s.detail = missing(c, path);
	/* the text of the service is that of the first error */
	if (p->errors.n > 0 && r->status == 409)
		s.detail = "The request conflicts with what exists.";
	return err_public(code_of(s.code, r->status), "%s",
	    s.detail != NULL ? s.detail : s.title);
}

static bool
is_secret(const struct client *c, const char *key)
{
	const char *const *secrets = c->secrets.items;
	size_t i;

	for (i = 0; i < c->secrets.n; i++)
		if (str_eq(secrets[i], key))
			return true;
	return false;
}

/* Where the fault is on the command line: "--environment", "--env KEY", or the
 * place in a file that was sent; the pointer if no argument sets that member. */
static const char *
fault_place(const struct client *c, const char *pointer)
{
	const struct option_row *o = c->call->command->options;
	const struct command_word *word = &c->call->command->word[0];
	const char *member, *key;

	if (pointer == NULL || *pointer == '\0')
		return "/";
	member = arena_strndup(c->a, pointer + 1, strcspn(pointer + 1, "/"));
	key = pointer + 1 + strlen(member);
	if (str_eq(word->member, member))
		return str_visible(c->a, *key == '\0' ? "/" : key);
	while (o != NULL && o->name != NULL && !str_eq(o->member, member))
		o++;
	if (o == NULL || o->name == NULL)
		return str_visible(c->a, pointer);
	if (*key == '\0')
		return arena_printf(c->a, "--%s", o->name);
	return arena_printf(c->a, "--%s %s",
	    is_secret(c, key + 1) ? "secret" : o->name,
	    str_visible(c->a, key + 1));
}

/* Whether the hint for that code applies to this error. */
static bool
is_apt(const struct client_problem *p, enum err_code code)
{
	if (code == ERR_INTERNAL)
		return p->request_id != NULL;
	return code != ERR_UNAVAILABLE || p->passes;
}

void
client_explain(const struct client *c, const struct err *e)
{
	const struct client_fault *f = c->problem.errors.items;
	size_t i;

	for (i = 0; i < c->problem.errors.n; i++)
		(void)fprintf(stderr, "  %s: %s\n",
		    fault_place(c, f[i].pointer),
		    f[i].detail == NULL ? "" : str_visible(c->a, f[i].detail));
	if (c->problem.request_id != NULL)
		(void)fprintf(stderr, "  request id: %s\n",
		    str_visible(c->a, c->problem.request_id));
	for (i = 0; i < sizeof(hints) / sizeof(hints[0]); i++)
		if (hints[i].code == e->code && is_apt(&c->problem, e->code))
			(void)fprintf(stderr, "%s\n", hints[i].text);
}

/* --- requests */

static const struct err *
call_once(struct client *c, const struct client_request *rq,
    struct http_response *out)
{
	struct http_request sent = {
		.method = rq->method,
		.url = arena_printf(c->a, "%s%s", c->host.url, rq->path),
		.body = rq->body,
		.len = rq->body == NULL ? 0 : strlen(rq->body),
		.type = rq->body == NULL ? NULL : "application/json",
		.deadline_ms = DEADLINE_MS + rq->wait * 1000,
		.max = BODY_MAX,
		.header = { { "Accept", "application/json, text/plain, */*" } },
	};
	size_t n = 1;

	if (!rq->open)
		sent.header[n++] = (struct http_header){ "Authorization",
			arena_printf(c->a, "Bearer %s", c->host.token) };
	if (rq->key != NULL)
		sent.header[n++] = (struct http_header){ "Idempotency-Key",
			rq->key };
	if (rq->range != NULL)
		sent.header[n++] = (struct http_header){ "Range", rq->range };
	return http_call(c->http, c->a, &sent, out);
}

static void
pause_s(int64_t seconds)
{
	const struct timespec time = { .tv_sec = seconds };

	(void)nanosleep(&time, NULL);
}

const struct err *
client_call(struct client *c, const struct client_request *rq,
    struct http_response *out)
{
	const struct err *e;
	size_t n;

	c->problem = (struct client_problem){ .request_id = NULL };
	if ((!rq->open && (e = client_sign_in(c)) != NULL) ||
	    (e = client_open(c)) != NULL)
		return e;
	for (n = 0;; n++) {
		e = call_once(c, rq, out);
		if (rq->key == NULL || n == REPEATS ||
		    (e == NULL && !is_away(out)))
			break;
		client_progress(c, "%s does not respond: trying again",
		    c->host.url);
		pause_s(repeat_s[n]);
	}
	client_progress(c, NULL);
	if (e != NULL || out->status < 400 ||
	    (out->status == 416 && rq->range != NULL))
		return e;
	return problem_read(c, rq->path, out);
}

const struct err *
client_get(struct client *c, const char *path, struct http_response *out)
{
	const struct client_request rq = { .method = HTTP_GET, .path = path };

	return client_call(c, &rq, out);
}

const struct err *
client_object(struct client *c, const char *path, const struct json_path *paths,
    void *item, struct http_response *out)
{
	const struct err *e;

	if ((e = client_get(c, path, out)) != NULL)
		return e;
	return json_pick(c->a, paths, out->body, out->len, item);
}

struct pages {
	int64_t total;
};
static const struct json_path pages_paths[] = {
	JSON_PATH(struct pages, total, "pagination.totalPages", .must = true),
	JSON_PATH_END,
};

/* GETs one page of a list, and says how many there are. */
static const struct err *
page_get(struct client *c, const char *path, int64_t page,
    struct http_response *r, int64_t *total)
{
	struct pages pages = { 0 };
	const struct err *e;

	*total = 0;
	e = client_object(c,
	    arena_printf(c->a, "%s&page=%lld&limit=%d", path, (long long)page,
		PAGE),
	    pages_paths, &pages, r);
	*total = pages.total;
	return e;
}

const struct err *
client_all(struct client *c, const char *path, const struct json_path *paths,
    size_t size, struct list *out)
{
	struct http_response r;
	struct list part;
	const struct err *e;
	int64_t page, total = 1;
	char *items;

	*out = (struct list){ .items = NULL };
	for (page = 1; page <= total; page++) {
		if ((e = page_get(c, path, page, &r, &total)) != NULL ||
		    (e = json_pick_member(c->a, "data", paths, size, r.body,
			 r.len, &part)) != NULL)
			return e;
		items = arena_alloc(c->a, out->n + part.n, size);
		if (out->n > 0)
			(void)memcpy(items, out->items, out->n * size);
		if (part.n > 0)
			(void)memcpy(items + out->n * size, part.items,
			    part.n * size);
		out->items = items;
		out->n += part.n;
	}
	return NULL;
}

const struct err *
client_print_all(struct client *c, const char *path)
{
	struct http_response r;
	const struct err *e;
	int64_t page, total = 1;

	for (page = 1; page <= total; page++) {
		if ((e = page_get(c, path, page, &r, &total)) != NULL)
			return e;
		client_print(&r);
	}
	return NULL;
}

bool
client_is_temporary(const struct err *e)
{
	return e->code == ERR_UPSTREAM || e->code == ERR_UPSTREAM_TIMEOUT ||
	    e->code == ERR_UNAVAILABLE || e->code == ERR_RATE ||
	    e->code == ERR_INTERNAL;
}

void
client_print(const struct http_response *r)
{
	(void)fwrite(r->body, 1, r->len, stdout);
	if (r->len == 0 || r->body[r->len - 1] != '\n')
		(void)putchar('\n');
}

void
client_progress(struct client *c, const char *fmt, ...)
{
	va_list args;

	if (c->shown)
		(void)fputs("\r\033[K", stderr);
	c->shown = c->progress && fmt != NULL;
	if (!c->shown)
		return;
	va_start(args, fmt);
	(void)vfprintf(stderr, fmt, args);
	va_end(args);
}

const char *
client_page(const struct client *c, int64_t deployment)
{
	return arena_printf(c->a, "%s/slipway/deployments/%lld", c->host.url,
	    (long long)deployment);
}
