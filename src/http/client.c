/* SPDX-License-Identifier: ISC */
#include <sys/socket.h>
#include <sys/types.h>

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <curl/curl.h>

#include "core/network.h"
#include "core/str.h"
#include "core/utf8.h"
#include "http/inner.h"

#define CONNECT_MS 5000
#define REDIRECTS 3
#define STACK ((size_t)256 << 10) /* for the thread that resolves a name */
/* Arena space for the headers of one response. */
#define HEAD_COST ((size_t)256 << 10)

#define FAILED(rc, t)                                                          \
	{                                                                      \
		rc, ERR_UPSTREAM, false, t                                     \
	}
#define REFUSED(rc, t)                                                         \
	{                                                                      \
		rc, ERR_UPSTREAM, true, t                                      \
	}

static const struct failure failures[] = {
	{ CURLE_OPERATION_TIMEDOUT, ERR_UPSTREAM_TIMEOUT, false,
	    "did not respond in time" },
	FAILED(CURLE_COULDNT_RESOLVE_HOST, "has an unknown host name"),
	FAILED(CURLE_COULDNT_RESOLVE_PROXY,
	    "cannot be reached: the proxy has an unknown host name"),
	FAILED(CURLE_COULDNT_CONNECT, "cannot be reached"),
	FAILED(CURLE_PEER_FAILED_VERIFICATION,
	    "has an invalid TLS certificate"),
	FAILED(CURLE_SSL_CONNECT_ERROR, "failed the TLS handshake"),
	FAILED(CURLE_GOT_NOTHING, "closed the connection without a response"),
	FAILED(CURLE_SEND_ERROR, "closed the connection"),
	FAILED(CURLE_RECV_ERROR, "cut the response short"),
	FAILED(CURLE_PARTIAL_FILE, "cut the response short"),
	REFUSED(CURLE_WRITE_ERROR, "sent a response that is too large"),
	REFUSED(CURLE_FILESIZE_EXCEEDED, "sent a response that is too large"),
	/* A header line without an end. */
	REFUSED(CURLE_OUT_OF_MEMORY, "sent a response that is too large"),
	REFUSED(CURLE_BAD_CONTENT_ENCODING,
	    "sent a response that cannot be decompressed"),
	REFUSED(CURLE_UNSUPPORTED_PROTOCOL, "does not respond with HTTP"),
	REFUSED(CURLE_WEIRD_SERVER_REPLY, "does not respond with HTTP"),
	{ CURLE_SSL_CACERT_BADFILE, ERR_CONFIG, true,
	    "cannot be verified: the CA file is not readable" },
	/* Of mail servers. */
	REFUSED(CURLE_LOGIN_DENIED, "rejected the user name or password"),
	REFUSED(CURLE_USE_SSL_FAILED, "does not offer STARTTLS"),
	FAILED(CURLE_OK, "cannot be reached"),
};

const struct failure *
http_failure(CURLcode rc)
{
	const struct failure *f = failures;

	while (f->rc != rc && f->rc != CURLE_OK)
		f++;
	return f;
}

const struct err *
http_library_start(void)
{
	struct sigaction ignore = { .sa_handler = SIG_IGN };
	const curl_version_info_data *v;
	pthread_attr_t small;

	if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
		return err_new(ERR_INTERNAL, "libcurl: cannot start");
	v = curl_version_info(CURLVERSION_NOW);
	if ((v->features & CURL_VERSION_ASYNCHDNS) == 0 ||
	    (v->features & CURL_VERSION_SSL) == 0)
		return err_new(ERR_CONFIG,
		    "libcurl %s: no TLS, or names without a deadline",
		    v->version);
	/* TLS writes to closed connections. */
	if (sigaction(SIGPIPE, &ignore, NULL) == -1)
		return err_errno("SIGPIPE");
	/* Limits the stacks of threads that resolve names; a worker's memory is
	 * limited. */
	if (pthread_attr_init(&small) != 0 ||
	    pthread_attr_setstacksize(&small, STACK) != 0 ||
	    pthread_setattr_default_np(&small) != 0)
		return err_new(ERR_INTERNAL, "threads: no smaller stack");
	(void)pthread_attr_destroy(&small);
	return NULL;
}

const struct err *
http_open(const struct http_options *options, struct http **out)
{
	const struct err *e;
	struct http *h;

	*out = NULL;
	if ((e = http_library_start()) != NULL)
		return e;
	h = mem_alloc(1, sizeof(*h));
	h->options = *options;
	h->owner = getpid();
	if ((h->curl = curl_easy_init()) == NULL) {
		mem_free(h);
		return err_new(ERR_INTERNAL, "libcurl: no handle");
	}
	*out = h;
	return NULL;
}

void
http_close(struct http *h)
{
	if (h == NULL)
		return;
	/* The parent still uses its connections. */
	if (h->owner == getpid())
		curl_easy_cleanup(h->curl);
	mem_free(h);
}

/* A child must not write to its parent's connections, not even to close them,
 * so it leaves the inherited handle alone. */
static const struct err *
own_handle(struct http *h)
{
	if (h->owner == getpid())
		return NULL;
	if ((h->curl = curl_easy_init()) == NULL)
		return err_new(ERR_INTERNAL, "libcurl: no handle");
	h->owner = getpid();
	return NULL;
}

/* Checks the very address that is connected to, so that a name which resolves
 * differently the next time reaches nothing else. */
static curl_socket_t
open_socket(void *context, curlsocktype purpose, struct curl_sockaddr *to)
{
	struct exchange *x = context;

	if (purpose != CURLSOCKTYPE_IPCXN ||
	    (!network_is_public(&to->addr) &&
		!network_has(x->networks, &to->addr))) {
		x->blocked = true;
		return CURL_SOCKET_BAD;
	}
	return socket(to->family, to->socktype | SOCK_CLOEXEC, to->protocol);
}

static size_t
take_body(char *data, size_t size, size_t n, void *context)
{
	struct exchange *x = context;

	buf_add(&x->body, data, size * n);
	return x->body.overflow ? 0 : size * n;
}

static size_t
take_header(char *data, size_t size, size_t n, void *context)
{
	struct exchange *x = context;
	size_t len = size * n;

	x->head += len;
	if (len >= 5 && memcmp(data, "HTTP/", 5) == 0)
		buf_clear(&x->lines);
	else
		buf_add(&x->lines, data, len);
	return x->head > HTTP_HEAD_MAX || x->lines.overflow ? 0 : len;
}

bool
request_fit(const struct http_request *r)
{
	const struct http_header *header = r->header;
	size_t i, len = OWN_LEN + (r->type == NULL ? 0 : strlen(r->type));

	for (i = 0; i < HTTP_HEADERS && header[i].name != NULL; i++) {
		if (!header_name_fit(header[i].name) ||
		    str_has_control(header[i].value))
			return false;
		len += strlen(header[i].name) + strlen(header[i].value) + 3;
	}
	return url_fit(r->url) && len <= SENT_MAX &&
	    (r->type == NULL || !str_has_control(r->type)) &&
	    (r->method != HTTP_GET || r->body == NULL);
}

void
headers_build(const struct http_request *r, char text[SENT_MAX],
    struct curl_slist *node)
{
	const struct http_header *header = r->header;
	size_t n = 0, i, used = 0;

	for (i = 0; i < HTTP_HEADERS && header[i].name != NULL; i++) {
		/* "Name:" would remove the header instead. */
		node[n++].data = text + used;
		used += (size_t)snprintf(text + used, SENT_MAX - used, "%s%s%s",
			    header[i].name,
			    *header[i].value == '\0' ? ";" : ": ",
			    header[i].value) +
		    1;
	}
	node[n++].data = text + used;
	used += (size_t)snprintf(text + used, SENT_MAX - used,
		    "Content-Type: %s", r->type == NULL ? "" : r->type) +
	    1;
	node[n++].data = text + used;
	(void)snprintf(text + used, SENT_MAX - used, "Expect:");
	for (i = 0; i < n; i++)
		node[i].next = i + 1 < n ? &node[i + 1] : NULL;
}

/* A connection that takes longer leaves no time for the response. */
static int64_t
connect_ms(int64_t left_ms)
{
	if (left_ms <= CONNECT_MS)
		return left_ms;
	return left_ms / 2 > CONNECT_MS ? left_ms / 2 : CONNECT_MS;
}

static CURLcode
set_numbers(const struct http *h, const struct exchange *x)
{
	const struct http_request *r = x->request;
	const struct {
		CURLoption option;
		long value;
	} numbers[] = {
		{ CURLOPT_NOSIGNAL, 1 },
		{ CURLOPT_FOLLOWLOCATION, 0 },
		{ CURLOPT_NETRC, CURL_NETRC_IGNORED },
		{ CURLOPT_DISALLOW_USERNAME_IN_URL, 1 },
		{ CURLOPT_SUPPRESS_CONNECT_HEADERS, 1 },
		{ CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1 },
		{ CURLOPT_SSL_VERIFYPEER, 1 },
		{ CURLOPT_SSL_VERIFYHOST, 2 },
		{ CURLOPT_SSLVERSION, CURL_SSLVERSION_TLSv1_2 },
		{ CURLOPT_TIMEOUT_MS, (long)x->left_ms },
		{ CURLOPT_CONNECTTIMEOUT_MS, (long)connect_ms(x->left_ms) },
		/* A silent name server must not exceed the deadline. */
		{ CURLOPT_QUICK_EXIT, 1 },
		/* If the server has closed a reused connection, libcurl sends
		 * the request again, which is safe only for idempotent
		 * requests. */
		{ CURLOPT_FRESH_CONNECT, r->method == HTTP_POST ? 1 : 0 },
	};
	CURLcode rc = CURLE_OK;
	size_t i;

	for (i = 0; rc == CURLE_OK && i < sizeof(numbers) / sizeof(*numbers);
	     i++)
		rc = curl_easy_setopt(h->curl, numbers[i].option,
		    numbers[i].value);
	return rc;
}

/* Those that libcurl does not choose by itself. */
static const char *const methods[HTTP__MAX] = {
	[HTTP_PUT] = "PUT",
	[HTTP_DELETE] = "DELETE",
};

CURLcode
exchange_set(const struct http *h, struct exchange *x,
    struct curl_slist *headers)
{
	const struct http_request *r = x->request;
	const struct {
		CURLoption option;
		const void *value;
	} pointers[] = {
		{ CURLOPT_URL, x->url },
		{ CURLOPT_USERAGENT, h->options.agent },
		{ CURLOPT_PROXY, h->options.direct ? "" : NULL },
		{ CURLOPT_PROTOCOLS_STR,
		    h->options.allow_http ? "http,https" : "https" },
		{ CURLOPT_ACCEPT_ENCODING, "" }, /* all that libcurl can
						  * decompress */
		{ CURLOPT_ERRORBUFFER, x->text },
		{ CURLOPT_WRITEDATA, x },
		{ CURLOPT_HEADERDATA, x },
		{ CURLOPT_HTTPHEADER, headers },
		{ CURLOPT_CUSTOMREQUEST, methods[r->method] },
	};
	CURLcode rc = set_numbers(h, x);
	size_t i;

	for (i = 0; rc == CURLE_OK && i < sizeof(pointers) / sizeof(*pointers);
	     i++)
		rc = curl_easy_setopt(h->curl, pointers[i].option,
		    pointers[i].value);
	if (rc == CURLE_OK && h->options.tls_ca != NULL &&
	    (rc = curl_easy_setopt(h->curl, CURLOPT_CAPATH, NULL)) == CURLE_OK)
		rc = curl_easy_setopt(h->curl, CURLOPT_CAINFO,
		    h->options.tls_ca);
	if (rc == CURLE_OK && x->networks != NULL &&
	    (rc = curl_easy_setopt(h->curl, CURLOPT_OPENSOCKETFUNCTION,
		 open_socket)) == CURLE_OK)
		rc = curl_easy_setopt(h->curl, CURLOPT_OPENSOCKETDATA, x);
	if (rc == CURLE_OK && (r->body != NULL || r->method == HTTP_POST) &&
	    (rc = curl_easy_setopt(h->curl, CURLOPT_POSTFIELDSIZE_LARGE,
		 (curl_off_t)r->len)) == CURLE_OK)
		rc = curl_easy_setopt(h->curl, CURLOPT_POSTFIELDS,
		    r->body == NULL ? "" : r->body);
	if (rc == CURLE_OK)
		rc = curl_easy_setopt(h->curl, CURLOPT_MAXFILESIZE_LARGE,
		    (curl_off_t)x->body.max);
	if (rc == CURLE_OK)
		rc = curl_easy_setopt(h->curl, CURLOPT_WRITEFUNCTION,
		    take_body);
	return rc != CURLE_OK ?
	    rc :
	    curl_easy_setopt(h->curl, CURLOPT_HEADERFUNCTION, take_header);
}

const char *
host_of(const char *origin)
{
	return strstr(origin, "://") + 3;
}

/* After a colon, libcurl says what is wrong with a certificate; no other text
 * of libcurl is fit for clients. */
static const char *
reason(CURLcode rc, const char *text)
{
	const char *why = strstr(text, ": ");

	if (rc != CURLE_PEER_FAILED_VERIFICATION || why == NULL ||
	    str_has_control(why) || !utf8_valid(why, strlen(why)))
		return "";
	return why;
}

const struct err *
call_failed(struct http *h, const char *origin, CURLcode rc,
    const struct exchange *x)
{
	const struct failure *f = http_failure(rc);

	if (x->blocked)
		return err_public(ERR_CONFIG,
		    "%s has a private address, which the settings do not list",
		    host_of(origin));
	if (h != NULL && f->answered)
		breaker_answered(&h->breaker, origin);
	else if (h != NULL)
		breaker_failed(&h->breaker, origin);
	return err_explain(err_new(f->code, "libcurl %d, %s", (int)rc, x->text),
	    f->code, "%s %s%s", host_of(origin), f->text, reason(rc, x->text));
}

/* A compressed response can be made arbitrarily large at no cost. */
static bool
is_packed(const struct exchange *x)
{
	return x->lines.len > 0 &&
	    strcasestr(x->lines.data, "\ncontent-encoding:") != NULL;
}

/* Performs one request; returns the status, or 0 with the reason. */
static const struct err *
exchange_run(struct http *h, const char *origin, struct exchange *x, int *out)
{
	struct curl_slist node[HTTP_HEADERS + OWN_HEADERS];
	char sent[SENT_MAX];
	CURLcode rc;
	long status = 0;

	*out = 0;
	x->text[0] = '\0';
	x->blocked = false;
	x->head = 0;
	buf_clear(&x->lines);
	buf_clear(&x->body);
	headers_build(x->request, sent, node);
	if ((rc = exchange_set(h, x, node)) == CURLE_OK &&
	    (rc = curl_easy_perform(h->curl)) == CURLE_OK)
		rc = curl_easy_getinfo(h->curl, CURLINFO_RESPONSE_CODE,
		    &status);
	/* Clears the request, keeps the connections. */
	curl_easy_reset(h->curl);
	explicit_bzero(sent, sizeof(sent));
	if (rc == CURLE_OK && status < 200)
		rc = CURLE_WEIRD_SERVER_REPLY;
	x->large = (rc == CURLE_FILESIZE_EXCEEDED || x->body.overflow) &&
	    !is_packed(x);
	if (rc != CURLE_OK)
		return call_failed(h, origin, rc, x);
	breaker_answered(&h->breaker, origin);
	*out = (int)status;
	return NULL;
}

void
response_build(struct arena *a, const struct exchange *x, int status,
    struct http_response *out)
{
	header_list(a, &x->lines, &out->headers);
	out->status = status;
	out->type = header_media_type(a, http_header(out, "content-type"));
	out->body = arena_strndup(a, x->body.data, x->body.len);
	out->len = x->body.len;
	out->url = x->url;
}

/* Evaluates a redirect of a GET: sets the new address, or leaves it NULL. */
static const struct err *
redirect(struct arena *a, const char *origin, const struct exchange *x,
    int status, const char **out)
{
	static const int moved[] = { 301, 302, 303, 307, 308 };
	struct http_response head = { .status = status };
	const char *to, *there;
	size_t i;

	*out = NULL;
	for (i = 0; i < sizeof(moved) / sizeof(moved[0]); i++)
		if (moved[i] == status && x->request->method == HTTP_GET)
			break;
	if (i == sizeof(moved) / sizeof(moved[0]))
		return NULL;
	header_list(a, &x->lines, &head.headers);
	if ((to = http_header(&head, "location")) == NULL)
		return NULL;
	if ((to = url_resolve(a, x->url, to)) == NULL ||
	    (there = http_origin(a, to)) == NULL)
		return err_public(ERR_UPSTREAM,
		    "%s redirects to an invalid HTTP address", host_of(origin));
	if (!str_eq(there, origin))
		return err_public(ERR_UPSTREAM,
		    "%s redirects to another server, %.200s, which is not "
		    "followed",
		    host_of(origin), there);
	*out = to;
	return NULL;
}

/* Repeats until a response is not a redirect. */
static const struct err *
follow(struct http *h, struct arena *a, const char *origin, struct exchange *x,
    struct http_response *out)
{
	int64_t end = time_mono_ms() + x->request->deadline_ms;
	const struct err *e;
	const char *next;
	int hops, status;

	for (hops = 0; hops <= REDIRECTS; hops++) {
		if ((x->left_ms = end - time_mono_ms()) <= 0)
			return err_public(ERR_UPSTREAM_TIMEOUT,
			    "%s did not respond in time", host_of(origin));
		if (arena_left(a) < HEAD_COST)
			return err_public(ERR_UPSTREAM,
			    "%s sent responses that are too large",
			    host_of(origin));
		x->body.max = (arena_left(a) - HEAD_COST) / 2;
		if (x->body.max > x->request->max)
			x->body.max = x->request->max;
		if ((e = exchange_run(h, origin, x, &status)) != NULL ||
		    (e = redirect(a, origin, x, status, &next)) != NULL)
			return e;
		if (next == NULL) {
			response_build(a, x, status, out);
			return NULL;
		}
		x->url = next;
	}
	return err_public(ERR_UPSTREAM, "%s redirects too many times",
	    host_of(origin));
}

const struct err *
http_call(struct http *h, struct arena *a, const struct http_request *r,
    struct http_response *out)
{
	struct exchange x = { .request = r,
		.url = r->url,
		.networks = h->options.networks };
	const struct err *e;
	const char *origin;
	int64_t wait;

	(void)memset(out, 0, sizeof(*out));
	if (!request_fit(r) || (origin = http_origin(a, r->url)) == NULL)
		return err_new(ERR_INTERNAL, "http: invalid request");
	if (!h->options.allow_http && str_starts(origin, "http:"))
		return err_public(ERR_CONFIG,
		    "%s: requests without TLS are not allowed",
		    host_of(origin));
	if ((wait = breaker_wait(&h->breaker, origin)) > 0)
		return err_public(ERR_UPSTREAM,
		    "%s failed to respond several times; the next request is "
		    "sent in %lld seconds",
		    host_of(origin), (long long)(wait + 999) / 1000);
	if ((e = own_handle(h)) != NULL)
		return e;
	buf_init(&x.lines, HTTP_HEAD_MAX);
	buf_init(&x.body, r->max);
	e = follow(h, a, origin, &x, out);
	out->large = x.large;
	buf_wipe(&x.body);
	buf_release(&x.lines);
	return e;
}
