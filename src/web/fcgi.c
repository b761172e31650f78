/* SPDX-License-Identifier: ISC */
#include "web/fcgi.h"

#include <sys/mman.h>
#include <sys/socket.h>

#include <errno.h>
#include <fastcgi.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <fcgiapp.h>

#include "core/log.h"
#include "core/num.h"
#include "core/str.h"
#include "crypto/crypto.h"
#include "web/answer.h"
#include "web/deadline.h"
#include "web/resource.h"
#include "web/route.h"
#include "web/scoreboard.h"

#define PARAMS_MS 1000  /* nginx buffers the whole request before it connects */
#define LINGER_MS 10000 /* time to drain input that a peer still sends… */
#define LINGER_PAUSE_MS 1000 /* …as long as some comes in each second */
#define LINGER_MAX (REQ_EVENT_MAX + REQ_BODY_MAX)
#define SLOW_MS 30000 /* a client may read slowly for this time, */
#define SLOW_RATE 32  /* and then has to read this many bytes a ms, in all */
#define STREAM_CHUNK ((size_t)64 * 1024)
#define ID_MAX 64
#define ID_CHARS                                                               \
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"

static const struct param {
	enum req_header at;
	const char *name;
	bool even_empty; /* an empty value is stored as well */
} params[] = {
	{ .at = IN_METHOD, .name = "REQUEST_METHOD" },
	{ .at = IN_URI, .name = "REQUEST_URI" },
	{ .at = IN_CONTENT_TYPE, .name = "CONTENT_TYPE" },
	{ .at = IN_CONTENT_ENCODING, .name = "HTTP_CONTENT_ENCODING" },
	{ .at = IN_CONTENT_LENGTH, .name = "CONTENT_LENGTH" },
	{ .at = IN_AUTHORIZATION, .name = "HTTP_AUTHORIZATION" },
	{ .at = IN_COOKIE, .name = "HTTP_COOKIE" },
	{ .at = IN_HOST, .name = "HTTP_HOST" },
	{ .at = IN_ORIGIN, .name = "HTTP_ORIGIN" },
	{ .at = IN_SEC_FETCH_SITE, .name = "HTTP_SEC_FETCH_SITE" },
	{ .at = IN_IF_MATCH, .name = "HTTP_IF_MATCH", .even_empty = true },
	{ .at = IN_IF_NONE_MATCH, .name = "HTTP_IF_NONE_MATCH" },
	{ .at = IN_RANGE, .name = "HTTP_RANGE" },
	{ .at = IN_IF_RANGE, .name = "HTTP_IF_RANGE" },
	{ .at = IN_IDEMPOTENCY_KEY,
	    .name = "HTTP_IDEMPOTENCY_KEY",
	    .even_empty = true },
	{ .at = IN_REQUEST_ID, .name = "REQUEST_ID" },
	{ .at = IN_REQUEST_MSEC, .name = "REQUEST_MSEC" },
	{ .at = IN_REMOTE_ADDR, .name = "REMOTE_ADDR" },
	{ .at = IN_REMOTE_USER, .name = "REMOTE_USER" },
	{ .at = IN_HTTPS, .name = "HTTPS" },
	{ .at = IN_WAIT_LEFT, .name = "WAIT_LEFT" },
	{ .at = IN_WAIT_AGAIN, .name = "WAIT_AGAIN" },
};

/* The body of a request. */
struct body {
	char *data; /* ends with a NUL */
	size_t len;
	void *map; /* NULL = it is in the request's arena */
};

static FCGX_Request request; /* its streams are recreated for each request */
static const char *volatile late_id; /* of the request being served */
static char late_seconds[24];        /* the request timeout, as text */

const struct err *
fcgi_init(const struct settings *s)
{
	struct sigaction ignore = { .sa_handler = SIG_IGN };
	const struct err *e;

	if ((e = deadline_init()) != NULL)
		return e;
	(void)snprintf(late_seconds, sizeof(late_seconds), "%lld",
	    (long long)s->api.request_timeout);
	(void)sigemptyset(&ignore.sa_mask);
	if (sigaction(SIGPIPE, &ignore, NULL) == -1)
		return err_errno("sigaction");
	if (FCGX_Init() != 0 || FCGX_InitRequest(&request, -1, 0) != 0)
		return err_new(ERR_INTERNAL, "cannot initialize libfcgi");
	return NULL;
}

/* The value if the parameter "HTTP_X_NAME=value" is the header "X-Name", else
 * NULL. */
static const char *
header_value(const char *param, const char *header)
{
	char c;

	for (param += 5; *header != '\0'; header++, param++) {
		c = *header == '-' ? '_' : *header;
		if (*param != (c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c))
			return NULL;
	}
	return *param == '=' ? param + 1 : NULL;
}

/* Stores a copy of a value, which outlives that of libfcgi. Most empty ones
 * count as absent. False if it is a repetition. */
static bool
param_take(struct req *rq, const struct param *p, const char *value)
{
	const char **to = &rq->in[p->at];
	const bool once = *to == NULL;

	if (*value != '\0' || p->even_empty)
		*to = arena_strdup(rq->a, value);
	return once;
}

/* The same for the headers of a resource. */
static bool
header_take(struct req *rq, const struct resource *res, const char *param)
{
	const char *value;
	bool once = true;
	size_t i;

	for (i = 0; res != NULL && i < res->headers; i++) {
		value = header_value(param, res->header_names[i]);
		if (value == NULL)
			continue;
		once = rq->header[i] == NULL && once;
		if (*value != '\0')
			rq->header[i] = arena_strdup(rq->a, value);
	}
	return once;
}

/* Fills rq->in and rq->header. False if a header that matters was sent twice. */
static bool
params_take(struct req *rq)
{
	const struct resource *res = resource_with_headers();
	const size_t n = sizeof(params) / sizeof(params[0]);
	char **env;
	bool once = true;
	size_t i, len;

	for (env = request.envp; *env != NULL; env++) {
		len = strcspn(*env, "=");
		for (i = 0; i < n; i++)
			if (strncmp(*env, params[i].name, len) == 0 &&
			    params[i].name[len] == '\0')
				once = param_take(rq, &params[i],
					   *env + len + 1) &&
				    once;
		if (strncmp(*env, "HTTP_", 5) == 0)
			once = header_take(rq, res, *env) && once;
	}
	return once;
}

/* nginx's id of the request if it is valid, else a new one. */
static const char *
request_id(struct req *rq)
{
	const char *given = rq->in[IN_REQUEST_ID];
	char own[CRYPTO_TOKEN_MAX];

	if (given != NULL && strlen(given) <= ID_MAX &&
	    given[strspn(given, ID_CHARS)] == '\0')
		return given;
	crypto_token("", own);
	return arena_strdup(rq->a, own);
}

/* Allocates room for a body and a NUL. A large body gets a mapping, which does
 * not count against the worker's memory limit and is released with the
 * request. */
static const struct err *
body_open(struct req *rq, size_t length, struct body *out)
{
	int fd;

	out->len = length;
	if (length <= REQ_BODY_MAX) {
		out->data = arena_alloc(rq->a, length + 1, 1);
		return NULL;
	}
	if ((fd = memfd_create("body", MFD_CLOEXEC)) == -1)
		return err_errno("memfd");
	if (ftruncate(fd, (off_t)length + 1) == 0)
		out->map = mmap(NULL, length + 1, PROT_READ | PROT_WRITE,
		    MAP_SHARED, fd, 0);
	(void)close(fd);
	if (out->map == NULL || out->map == MAP_FAILED) {
		out->map = NULL;
		return err_errno("memory for a body");
	}
	out->data = out->map;
	return NULL;
}

static void
body_close(struct body *b)
{
	if (b->map != NULL)
		(void)munmap(b->map, b->len + 1);
	b->map = NULL;
}

/* Text in fixed memory: a signal handler can use neither the heap nor printf. */
struct late {
	size_t len;
	char text[2048];
};

static void
late_add(struct late *l, const void *data, size_t len)
{
	if (len > sizeof(l->text) - l->len)
		len = sizeof(l->text) - l->len;
	(void)memcpy(l->text + l->len, data, len);
	l->len += len;
}

static void
late_puts(struct late *l, const char *s)
{
	late_add(l, s, strlen(s));
}

/* Appends a FastCGI record. */
static void
late_record(struct late *l, unsigned char type, const struct late *content)
{
	const size_t len = content == NULL ? 0 : content->len;
	const unsigned char head[] = { FCGI_VERSION_1, type,
		(unsigned char)(request.requestId >> 8 & 0xff),
		(unsigned char)(request.requestId & 0xff),
		(unsigned char)(len >> 8), (unsigned char)(len & 0xff), 0, 0 };

	late_add(l, head, sizeof(head));
	if (content != NULL)
		late_add(l, content->text, len);
}

/* Sends the response for a request that exceeds its deadline. Runs in a signal
 * handler. */
static void
late_respond(void)
{
	static struct late answer, records;
	static const struct late end = { .len = 8 };

	late_puts(&answer,
	    "Status: 504 Gateway Timeout\r\n"
	    "Content-Type: application/problem+json\r\n"
	    "Cache-Control: no-store\r\n"
	    "X-Content-Type-Options: nosniff\r\n"
	    "Content-Security-Policy: default-src 'none'; frame-ancestors "
	    "'none'\r\nX-Request-Id: ");
	late_puts(&answer, late_id);
	late_puts(&answer,
	    "\r\n\r\n{\"type\":\"about:blank\",\"title\":\"Gateway "
	    "Timeout\",\"status\":504,\"detail\":\"The request took longer "
	    "than ");
	late_puts(&answer, late_seconds);
	late_puts(&answer,
	    " seconds and was aborted. Check what it changed before you send "
	    "it again.\",\"code\":\"upstream_timeout\",\"requestId\":\"");
	late_puts(&answer, late_id);
	late_puts(&answer, "\"}\n");
	late_record(&records, FCGI_STDOUT, &answer);
	late_record(&records, FCGI_STDOUT, NULL);
	late_record(&records, FCGI_END_REQUEST, &end);
	(void)send(request.ipcFd, records.text, records.len, MSG_NOSIGNAL);
}

/* Once a response has begun, no other can follow. */
static void
late_silent(void)
{
}

/* Starts the deadline: the process ends unless work_end() is called in time. */
static void
work_begin(const struct req *rq, void (*last)(void))
{
	const int64_t ms = rq->settings->api.request_timeout * 1000;

	late_id = rq->request_id;
	scoreboard_begin(rq->place, rq->in[IN_METHOD], rq->in[IN_URI],
	    rq->request_id, time_mono_ms() + ms);
	deadline_exit(ms, last, DEADLINE_MISSED);
}

static void
work_end(const struct req *rq)
{
	deadline_clear();
	atomic_store(&rq->place->until, 0);
}

static const struct err *
body_too_large(const struct req *rq)
{
	if (route_body_max(rq) == REQ_EVENT_MAX)
		return err_public(ERR_TOO_LARGE,
		    "The body is larger than 32 MiB, the limit for a push event.");
	if (route_body_max(rq) == REQ_DOCUMENT_MAX)
		return err_public(ERR_TOO_LARGE,
		    "The body is larger than 8 MiB, the limit for the document "
		    "of a project. Import its parts in several documents.");
	return err_public(ERR_TOO_LARGE,
	    "The body is larger than 1 MiB. Only a signed push event may be "
	    "larger, and the document of a project.");
}

/* Reads the complete body and checks its length. */
static const struct err *
body_take(struct req *rq, struct body *out)
{
	const char *text = rq->in[IN_CONTENT_LENGTH];
	const struct err *e;
	int64_t length = 0;
	int got;

	if (text != NULL && !num_parse(text, 0, NUM_SAFE, &length))
		return err_public(ERR_BAD_REQUEST,
		    "Content-Length must be a number.");
	if (length > (int64_t)route_body_max(rq))
		return body_too_large(rq);
	if ((e = body_open(rq, (size_t)length, out)) != NULL)
		return e;
	got = FCGX_GetStr(out->data, (int)length, request.in);
	if (got != length || FCGX_GetError(request.in) != 0)
		return err_public(ERR_BAD_REQUEST,
		    "The body is shorter than its Content-Length.");
	if (FCGX_GetChar(request.in) != -1)
		return err_public(ERR_BAD_REQUEST,
		    "The body is longer than its Content-Length.");
	if (FCGX_GetError(request.in) != 0)
		return err_public(ERR_BAD_REQUEST,
		    "The body is incomplete: the "
		    "connection was interrupted.");
	return NULL;
}

static bool
output_put(struct req *rq, const char *data, size_t len)
{
	size_t part;
	int done = 0;

	for (; len > 0 && done >= 0; data += part, len -= part) {
		part = len < STREAM_CHUNK ? len : STREAM_CHUNK;
		deadline_close(request.ipcFd,
		    rq->settings->api.io_timeout * 1000);
		done = FCGX_PutStr(data, (int)part, request.out);
	}
	return done >= 0;
}

/* Whether the client has read too slowly since the time; a worker must not wait
 * for hours. */
static bool
is_slow(int64_t since, int64_t sent)
{
	return time_mono_ms() - since > SLOW_MS + sent / SLOW_RATE;
}

static bool
output_stream(struct req *rq)
{
	const int64_t began = time_mono_ms();
	struct answer *an = &rq->answer;
	const struct err *e;
	struct blob more;
	int64_t at = an->start, left = an->length;
	size_t max;

	while (left != 0) {
		max = left > 0 && left < (int64_t)STREAM_CHUNK ? (size_t)left :
								 STREAM_CHUNK;
		work_begin(rq, late_silent);
		e = an->source(rq, at, max, &more);
		work_end(rq);
		if (e != NULL) {
			log_err(e, rq->request_id);
			return false;
		}
		if (more.len == 0)
			return left < 0;
		if (more.len > max || !output_put(rq, more.data, more.len))
			return false;
		if (is_slow(began, at - an->start)) {
			log_info("%s: the client reads too slowly; sent %lld "
				 "bytes",
			    rq->request_id, (long long)(at - an->start));
			return false;
		}
		at += (int64_t)more.len;
		if (left > 0)
			left -= (int64_t)more.len;
	}
	return true;
}

static void
headers_put(struct buf *b, const struct answer *an)
{
	const struct out_header *h = an->header;
	size_t i;

	for (i = 0; i < an->headers; i++) {
		buf_puts(b, h[i].name);
		buf_puts(b, ": ");
		buf_puts(b, h[i].value);
		buf_puts(b, "\r\n");
	}
}

/* Writes the response; false if the connection failed. */
static bool
answer_write(struct req *rq)
{
	const struct answer *an = &rq->answer;
	bool bodiless = an->status == 204 || an->status == 304;
	bool head = rq->in[IN_METHOD] != NULL &&
	    strcmp(rq->in[IN_METHOD], "HEAD") == 0;
	struct buf b;
	bool ok;

	buf_init(&b, (size_t)64 * 1024);
	buf_printf(&b, "Status: %d %s\r\n", an->status,
	    status_phrase(an->status));
	if (!bodiless)
		buf_printf(&b, "Content-Type: %s\r\n",
		    an->type == NULL ? "application/json" : an->type);
	if (!bodiless && (an->source == NULL || an->length >= 0))
		buf_printf(&b, "Content-Length: %lld\r\n",
		    an->source != NULL ? (long long)an->length :
					 (long long)an->body.len);
	headers_put(&b, an);
	buf_puts(&b, "\r\n");
	if (!bodiless && !head && an->source == NULL && an->body.len > 0 &&
	    an->body.len < STREAM_CHUNK / 2) {
		buf_add(&b, an->body.data, an->body.len);
		bodiless = true;
	}
	ok = !b.overflow && output_put(rq, b.data, b.len);
	buf_release(&b);
	if (!ok || bodiless || head)
		return ok;
	if (an->source != NULL)
		return output_stream(rq);
	return output_put(rq, an->body.data, an->body.len);
}

/* Waits for input and discards it; false if none comes, or no more can. */
static bool
input_discard(int fd, size_t *total)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };
	char trash[8192];
	ssize_t got;
	int ready;

	if ((ready = poll(&pfd, 1, LINGER_PAUSE_MS)) <= 0)
		return ready == -1 && errno == EINTR; /* see deadline.h */
	if ((got = recv(fd, trash, sizeof(trash), MSG_DONTWAIT)) > 0)
		*total += (size_t)got;
	return got > 0;
}

/* Closing a socket with unread bytes resets the connection, and the peer may
 * lose the response. Discards them until the peer closes, within limits. */
static void
peer_await(int fd)
{
	const int64_t end = time_mono_ms() + LINGER_MS;
	size_t total = 0;

	(void)shutdown(fd, SHUT_WR);
	while (total < LINGER_MAX && time_mono_ms() < end &&
	    input_discard(fd, &total))
		continue;
}

static void
connection_finish(int fd, bool read_all, bool written)
{
	deadline_close(fd, 1000);
	if (written) {
		request.keepConnection = 1; /* this file closes it */
		FCGX_Finish_r(&request);
	} else {
		FCGX_Free(&request, 0);
	}
	deadline_clear();
	if (request.ipcFd == -1)
		return; /* a write failed, and libfcgi has closed the socket */
	request.ipcFd = -1;
	if (!read_all && written)
		peer_await(fd);
	(void)close(fd);
}

bool
fcgi_serve(int fd, struct req *rq)
{
	const struct err *e;
	struct body body = { .data = NULL };
	bool once;

	deadline_close(fd, PARAMS_MS);
	request.ipcFd = fd;
	request.keepConnection = 1;
	if (FCGX_Accept_r(&request) < 0) {
		deadline_clear();
		FCGX_Free(&request, 0);
		if (request.ipcFd != -1)
			(void)close(fd);
		request.ipcFd = -1;
		return false;
	}
	deadline_close(fd, rq->settings->api.io_timeout * 1000);
	once = params_take(rq);
	rq->request_id = request_id(rq);
	if (rq->in[IN_METHOD] == NULL || rq->in[IN_URI] == NULL) {
		rq->in[IN_METHOD] = rq->in[IN_URI] = "";
		once = false;
	}
	e = body_take(rq, &body);
	if (!once)
		e = err_public(ERR_BAD_REQUEST,
		    "The method, the URL or a header field is missing or "
		    "repeated.");
	deadline_clear();
	rq->client_fd = fd;
	work_begin(rq, late_respond);
	if (e != NULL)
		route_reject(rq, e);
	else
		route_serve(rq, body.data, body.len);
	work_end(rq);
	connection_finish(fd, e == NULL, answer_write(rq));
	body_close(&body);
	scoreboard_end(rq->place);
	return true;
}
