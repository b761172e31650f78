/* SPDX-License-Identifier: ISC */
#include "web/route.h"

#include <assert.h>
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "core/log.h"
#include "core/num.h"
#include "core/str.h"
#include "crypto/keyring.h"
#include "crypto/public_key.h"
#include "web/answer.h"
#include "web/auth.h"
#include "web/etag.h"
#include "web/resource.h"
#include "web/scope.h"
#include "web/scoreboard.h"

const char *const route_methods[METHOD__MAX] = {
	[METHOD_GET] = "GET",
	[METHOD_POST] = "POST",
	[METHOD_PUT] = "PUT",
	[METHOD_DELETE] = "DELETE",
};

#define GONE_MS 1000 /* after this wait, the client of a read may have left */
#define HELD_MAX ((int64_t)4 << 20) /* fastcgi_max_temp_file_size of nginx */
#define DOWNLOAD_RETRY_S 5
#define SLUG_ERE "[a-z0-9][a-z0-9._-]{0,63}"

/* Whether the path matches the pattern; stores the values of {…} in id and
 * slug. */
static bool
path_match(const struct route *rt, struct req *rq)
{
	const char *pattern = rt->path, *path = rq->path;
	size_t n = 0, len;

	while (*pattern != '\0') {
		if (*pattern != '{') {
			if (*pattern++ != *path++)
				return false;
			continue;
		}
		assert(n < REQ_IDS);
		len = strcspn(path, "/");
		rq->slug[n] = arena_strndup(rq->a, path, len);
		if ((rt->flags & ROUTE_SLUG) != 0 ?
			!str_matches(rq->slug[n], SLUG_ERE) :
			!num_parse(rq->slug[n], 1, NUM_SAFE, &rq->id[n]))
			return false;
		n++;
		path += len;
		pattern += strcspn(pattern, "}") + 1;
	}
	return *path == '\0';
}

/* Finds the route for path and method; `seen` gets the path's methods as bits.
 * Several patterns can match: "/user/list" and "/user/{id}", which rejects the
 * word later. The first route with the method wins. */
static const struct route *
route_look(struct req *rq, const char *method, unsigned *seen)
{
	const struct resource *const *res;
	const struct route *rt;

	*seen = 0;
	for (res = resources; *res != NULL; res++)
		for (rt = (*res)->routes; rt->path != NULL; rt++) {
			if (!path_match(rt, rq))
				continue;
			if (strcmp(method, route_methods[rt->method]) == 0)
				return rt;
			*seen |= 1u << rt->method;
		}
	return NULL;
}

static const struct err *
route_find(struct req *rq)
{
	const char *method = rq->in[IN_METHOD];
	unsigned seen;
	struct buf allow;
	int m;

	if (strcmp(method, "HEAD") == 0)
		method = "GET";
	if ((rq->route = route_look(rq, method, &seen)) != NULL)
		return NULL;
	if (seen == 0)
		return err_public(ERR_NOTFOUND, "No resource has this path.");
	buf_init(&allow, 64);
	for (m = 0; m < METHOD__MAX; m++)
		if ((seen & 1u << m) != 0)
			buf_printf(&allow, "%s%s, ", route_methods[m],
			    m == METHOD_GET ? ", HEAD" : "");
	answer_header(rq, "Allow", "%sOPTIONS", allow.data);
	buf_release(&allow);
	if (strcmp(method, "OPTIONS") == 0) {
		answer_status(rq, 204);
		return NULL;
	}
	return err_new(ERR_METHOD, "%s", method);
}

/* Whether a route only reads rows for a known user. */
static bool
is_plain_read(const struct route *rt)
{
	return rt->method == METHOD_GET && rt->role != ROLE_NONE &&
	    rt->pool == POOL_API;
}

/* Loads new keys, so that nothing is sealed with a key about to be dropped, and
 * data sealed by another process with a new key can be opened, in whatever
 * order they reload. A plain read gets no keys and skips the check of the
 * files. */
static void
keys_renew(struct req *rq)
{
	const struct err *e;

	if (is_plain_read(rq->route)) {
		rq->keyring = NULL;
		rq->public_key = NULL;
		return;
	}
	if (rq->keyring != NULL && (e = keyring_renew(rq->keyring)) != NULL)
		log_err(e, "the old keys stay in use");
	if (rq->public_key != NULL &&
	    (e = public_key_renew(rq->public_key)) != NULL)
		log_err(e, "the old key stays in use");
}

static const struct err *
role_check(struct req *rq)
{
	const struct route *rt = rq->route;
	const struct err *e;
	unsigned flags = 0;

	if (rt->role == ROLE_NONE)
		return NULL;
	if (rq->unready != NULL)
		return rq->unready;
	if (rt->method != METHOD_GET || (rt->flags & ROUTE_SAME_ORIGIN) != 0)
		flags |= AUTH_WRITE;
	if ((e = auth_check(rq, flags)) != NULL)
		return e;
	return scope_path(rq);
}

static bool
one_of(const char *const *values, const char *s)
{
	for (; *values != NULL; values++)
		if (strcmp(*values, s) == 0)
			return true;
	return false;
}

static const struct err *
param_read(const struct route_param *p, const char *text, struct req_value *out)
{
	struct buf choices;
	const struct err *e;
	const char *const *v;
	int64_t chars;

	if (p->type == PARAM_STR && *text == '\0' && p->must == 0)
		return NULL; /* forms send empty fields, too */
	out->set = true;
	out->s = text;
	if (p->type == PARAM_INT) {
		if (num_parse(text, p->min, p->max, &out->n))
			return NULL;
		return err_public(ERR_BAD_REQUEST,
		    "The query parameter \"%s\" must be an integer from %lld "
		    "to %lld.",
		    p->name, (long long)p->min, (long long)p->max);
	}
	if (p->values != NULL) {
		if (one_of(p->values, text))
			return NULL;
		buf_init(&choices, 256);
		for (v = p->values; *v != NULL; v++)
			buf_printf(&choices, " %s", *v);
		e = err_public(ERR_BAD_REQUEST,
		    "The query parameter \"%s\" must be one of:%s.", p->name,
		    choices.data);
		buf_release(&choices);
		return e;
	}
	chars = (int64_t)str_chars(text);
	if (chars < p->min || (p->max > 0 && chars > p->max))
		return err_public(ERR_BAD_REQUEST,
		    "The query parameter \"%s\" must have %lld to %lld "
		    "characters.",
		    p->name, (long long)p->min, (long long)p->max);
	return NULL;
}

static const struct err *
query_read(struct req *rq)
{
	static const struct route_param none[] = { { .name = NULL } };
	const struct route_param *table = rq->route->query;
	const struct uri_pair *pair;
	const struct err *e;
	size_t i, k;

	if (table == NULL)
		table = none;
	for (i = 0; table[i].name != NULL; i++) {
		assert(i < REQ_PARAMS);
		rq->query[i].n = table[i].fallback;
		pair = uri_pair_find(rq->pair, table[i].name);
		if (pair == NULL && table[i].must != 0)
			return err_public(ERR_BAD_REQUEST,
			    "The query parameter \"%s\" is required.",
			    table[i].name);
		if (pair != NULL &&
		    (e = param_read(&table[i], pair->value, &rq->query[i])) !=
			NULL)
			return e;
	}
	for (k = 0; k < rq->pairs; k++) {
		for (i = 0; table[i].name != NULL; i++)
			if (strcmp(table[i].name, rq->pair[k].name) == 0)
				break;
		if (table[i].name == NULL)
			return err_public(ERR_BAD_REQUEST,
			    "Unknown query parameter \"%s\".",
			    str_clip(rq->a, rq->pair[k].name, 100));
	}
	return NULL;
}

/* Whether the parameter is compatible with JSON: a charset must be UTF-8, other
 * parameters have no meaning (RFC 8259, section 11). */
static bool
type_param_fits(const char *param, size_t len)
{
	static const char *const fits[] = { "charset=utf-8",
		"charset=\"utf-8\"", NULL };
	size_t i;

	if (strncasecmp(param, "charset=", 8) != 0)
		return true;
	for (i = 0; fits[i] != NULL; i++)
		if (strlen(fits[i]) == len &&
		    strncasecmp(param, fits[i], len) == 0)
			return true;
	return false;
}

/* application/json, with optional parameters (RFC 9110, section 5.6.6). */
static bool
is_json(const char *type)
{
	const char *p = type;
	size_t len;

	if (p == NULL || strncasecmp(p, "application/json", 16) != 0)
		return false;
	for (p += 16;; p += len) {
		p += strspn(p, " \t");
		if (*p == '\0')
			return true;
		if (*p++ != ';')
			return false;
		p += strspn(p, " \t");
		len = strcspn(p, "; \t");
		if (!type_param_fits(p, len))
			return false;
	}
}

/* Both rejections name what is accepted (RFC 9110, section 15.5.16). */
static const struct err *
type_rejected(struct req *rq)
{
	answer_header(rq, "Accept", "application/json");
	return err_public(ERR_MEDIA_TYPE,
	    "The body must be sent as Content-Type: application/json.");
}

static const struct err *
encoding_rejected(struct req *rq)
{
	answer_header(rq, "Accept-Encoding", "identity");
	return err_public(ERR_MEDIA_TYPE,
	    "The body must be sent without a Content-Encoding.");
}

static const struct err *
body_read(struct req *rq, const char *body, size_t len)
{
	const struct route *rt = rq->route;
	const struct err *e;

	if (rt->in == NULL && (rt->flags & ROUTE_SIGNED) == 0) {
		if (len == 0 ||
		    (rt->method != METHOD_GET && len == 2 &&
			memcmp(body, "{}", 2) == 0))
			return NULL;
		return err_public(ERR_BAD_REQUEST,
		    "This request must not have a body.");
	}
	if (len == 0 && rt->in != NULL && (rt->flags & ROUTE_BODILESS) != 0) {
		rq->body = arena_alloc(rq->a, 1, rt->in->size);
		return NULL;
	}
	if (!is_json(rq->in[IN_CONTENT_TYPE]))
		return type_rejected(rq);
	if (rq->in[IN_CONTENT_ENCODING] != NULL &&
	    strcasecmp(rq->in[IN_CONTENT_ENCODING], "identity") != 0)
		return encoding_rejected(rq);
	if (len == 0)
		return err_public(ERR_BAD_REQUEST,
		    "The body is missing. Send a JSON object.");
	rq->text = body;
	rq->len = len;
	if (rt->in == NULL)
		return NULL;
	if (rt->mode == JSON_UPDATE) /* parsed over a row that the handler
				      * locks */
		return json_strict(body, len);
	rq->body = arena_alloc(rq->a, 1, rt->in->size);
	if ((e = json_read(rt->in, JSON_CREATE, body, len, rq->body,
		 &rq->faults)) != NULL ||
	    (e = scope_body(rq)) != NULL || rq->faults.n == 0)
		return e;
	/* adds the faults that the handler would find */
	if (rt->judge != NULL && (e = rt->judge(rq, rq->body)) != NULL)
		return e;
	return faults_check(&rq->faults);
}

const struct err *
route_call(struct req *rq, const char *body, size_t len)
{
	const struct err *e = body_read(rq, body, len);

	return e != NULL ? e : rq->route->handler(rq);
}

/* A precondition that the route cannot check must fail rather than be
 * ignored. */
static const struct err *
unguarded_check(const struct req *rq)
{
	if (rq->route->method == METHOD_GET || rq->in[IN_IF_MATCH] == NULL ||
	    (rq->route->flags & ROUTE_GUARDED) != 0)
		return NULL;
	return etag_require(rq->in[IN_IF_MATCH], NULL);
}

/* A request that its client or nginx has given up while it waited for a worker
 * must change nothing, because the client has seen a failure. Push events are
 * the exception: a Git server does not wait for the response and does not
 * retry, and a repeated event does nothing twice. */
static const struct err *
late_check(const struct req *rq)
{
	const int64_t most = rq->settings->api.request_timeout * 1000;
	int64_t waited;

	if ((rq->route->flags & ROUTE_SIGNED) != 0)
		return NULL;
	waited = req_waited(rq);
	if ((rq->route->method != METHOD_GET || waited > GONE_MS) &&
	    req_client_gone(rq))
		return err_public(ERR_UNAVAILABLE,
		    "The client closed the connection before the request "
		    "started.");
	if (waited > most)
		return err_public(ERR_UNAVAILABLE,
		    "The request waited %lld seconds for a free worker and was "
		    "not started. Send it again.",
		    (long long)waited / 1000);
	return NULL;
}

/* No limit allows a read that does not fit into memory, so that is an internal
 * error. A write has succeeded already; its client can read the result. */
static const struct err *
answer_check(struct req *rq)
{
	struct answer *an = &rq->answer;
	const struct err *e;

	if ((e = buf_check(&an->body)) == NULL)
		return NULL;
	if (rq->route->method == METHOD_GET)
		return err_new(ERR_INTERNAL, "response: %s", e->msg);
	log_error("%s: response dropped: %s", rq->request_id, e->msg);
	buf_clear(&an->body);
	an->etag = NULL;
	return NULL;
}

static const struct err *
request_run(struct req *rq, const char *body, size_t len)
{
	const struct err *e;
	struct uri uri;

	if ((e = uri_parse(rq->a, rq->in[IN_URI], &uri)) != NULL)
		return e;
	rq->path = uri.path;
	(void)memcpy(rq->pair, uri.pair, sizeof(rq->pair));
	rq->pairs = uri.pairs;
	if ((e = route_find(rq)) != NULL || rq->route == NULL)
		return e;
	if ((e = late_check(rq)) != NULL)
		return e;
	keys_renew(rq);
	if ((e = role_check(rq)) != NULL)
		return e;
	if ((e = query_read(rq)) != NULL || (e = scope_query(rq)) != NULL)
		return e;
	if ((e = body_read(rq, body, len)) != NULL ||
	    (e = scope_rest(rq)) != NULL)
		return e;
	if ((e = unguarded_check(rq)) != NULL)
		return e;
	if ((e = rq->route->handler(rq)) != NULL)
		return e;
	if (rq->route->method != METHOD_GET &&
	    (e = req_check_audited(rq)) != NULL)
		return e;
	if (rq->answer.status == 0)
		rq->answer.status = rq->route->status;
	if (rq->answer.type == NULL && rq->answer.body.len > 0)
		buf_putc(&rq->answer.body, '\n'); /* JSON ends with a newline */
	return answer_check(rq);
}

/* Evaluates the preconditions of a read, If-Match before If-None-Match (RFC
 * 9110, section 13.2.2). 304 if the client has the current version. */
static const struct err *
read_condition(struct req *rq)
{
	struct answer *an = &rq->answer;
	const bool read = rq->route->method == METHOD_GET &&
	    (an->status == 200 || an->status == 206);
	const struct err *e;

	if (read && rq->in[IN_IF_MATCH] != NULL &&
	    (e = etag_require(rq->in[IN_IF_MATCH], an->etag)) != NULL)
		return e;
	if (an->etag == NULL)
		return NULL;
	answer_header(rq, "ETag", "\"%s\"", an->etag);
	if (read && rq->in[IN_IF_NONE_MATCH] != NULL &&
	    etag_listed(rq->in[IN_IF_NONE_MATCH], an->etag)) {
		an->status = 304;
		buf_clear(&an->body);
	}
	return NULL;
}

static void
error_answer(struct req *rq, const struct err *e)
{
	writable_note(&rq->scoreboard->writable, e);
	if (err_kinds[e->code].http >= 500)
		log_error("%s %s %s: %s", rq->request_id, rq->in[IN_METHOD],
		    rq->path, e->msg);
	else
		log_debug("%s %s %s: %s", rq->request_id, rq->in[IN_METHOD],
		    rq->path, e->msg);
	problem_answer(rq, e);
}

static void
answer_begin(struct req *rq)
{
	faults_init(&rq->faults, rq->a);
	rq->path = "";
	rq->who_text = "-";
}

/* Sets the headers of every response. */
static void
answer_end(struct req *rq)
{
	answer_header(rq, "X-Request-Id", "%s", rq->request_id);
	if (rq->answer.max_age > 0)
		answer_header(rq, "Cache-Control", "public, max-age=%lld",
		    (long long)rq->answer.max_age);
	else if (!rq->answer.is_elsewhere) /* nginx would send it twice */
		answer_header(rq, "Cache-Control", "no-store");
	answer_header(rq, "X-Content-Type-Options", "nosniff");
	answer_header(rq, "Content-Security-Policy",
	    "default-src 'none'; frame-ancestors 'none'");
}

/* Whether the request could be one of the route, up to its first parameter. */
static bool
is_below(const struct req *rq, const struct route *rt)
{
	const size_t len = strcspn(rt->path, "{");
	const char end = rq->in[IN_URI][len];

	return strncmp(rq->in[IN_URI], rt->path, len) == 0 &&
	    (rt->path[len] == '{' || end == '\0' || end == '?');
}

static bool
has_credentials(const struct req *rq)
{
	return rq->in[IN_AUTHORIZATION] != NULL || rq->in[IN_COOKIE] != NULL ||
	    rq->in[IN_REMOTE_USER] != NULL;
}

/* An event lists all files of a push, and a document contains scripts, so those
 * that are signed, and that come with credentials, have higher limits. */
size_t
route_body_max(const struct req *rq)
{
	const struct resource *const *res;
	const struct route *rt;

	for (res = resources; *res != NULL; res++)
		for (rt = (*res)->routes; rt->path != NULL; rt++) {
			if ((rt->flags & (ROUTE_SIGNED | ROUTE_DOCUMENT)) ==
				0 ||
			    !is_below(rq, rt))
				continue;
			if ((rt->flags & ROUTE_DOCUMENT) != 0)
				return has_credentials(rq) ? REQ_DOCUMENT_MAX :
							     REQ_BODY_MAX;
			return rt->is_signed(rq) ? REQ_EVENT_MAX : REQ_BODY_MAX;
		}
	return REQ_BODY_MAX;
}

void
route_reject(struct req *rq, const struct err *e)
{
	answer_begin(rq);
	error_answer(rq, e);
	answer_end(rq);
}

/* Counts a response that nginx does not hold: its worker is busy until the
 * client has read it. */
static const struct err *
download_begin(struct req *rq)
{
	const struct answer *an = &rq->answer;
	enum scoreboard_long may;

	if (strcmp(rq->in[IN_METHOD], "GET") != 0 || an->source == NULL ||
	    (an->length >= 0 && an->length <= HELD_MAX))
		return NULL;
	may = scoreboard_long_begin(rq->scoreboard, rq->place,
	    SCOREBOARD_DOWNLOAD, rq->who.user_id);
	if (may == SCOREBOARD_LONG_YES)
		return NULL;
	answer_header(rq, "Retry-After", "%d", DOWNLOAD_RETRY_S);
	return err_public(ERR_RATE,
	    "%s Try again when one has ended, or request less at a time: a "
	    "part of the log (Range), or fewer objects (limit).",
	    may == SCOREBOARD_LONG_USER ?
		"You are reading two large responses already." :
		"Too many large responses are being read.");
}

void
route_serve(struct req *rq, const char *body, size_t len)
{
	const struct err *e;

	answer_begin(rq);
	e = request_run(rq, body, len);
	if (e == NULL && rq->route != NULL)
		e = read_condition(rq);
	if (e == NULL)
		e = download_begin(rq);
	if (e != NULL)
		error_answer(rq, e);
	answer_end(rq);
}
