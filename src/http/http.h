/* SPDX-License-Identifier: ISC */
/*
 * An HTTP client (RFC 9110) by libcurl, for servers that may be slow, silent,
 * lying or dead.
 *
 * Every call ends by its deadline and keeps at most `max` bytes of the body,
 * also of one that was compressed.  TLS is always verified.  A redirect is
 * followed by GET only, three times at most, and only to the same scheme, host
 * and port: credentials never reach another server.  Proxies are those of the
 * environment (curl(1)); cookies, .netrc and protocols other than HTTP do not
 * exist.
 *
 * ERR_UPSTREAM_TIMEOUT: not answered in time.  ERR_UPSTREAM: refused, unknown
 * host, TLS not verified, cut short, too large, no HTTP, redirected elsewhere.
 * Both tell the client in words what happened, with the server's host and
 * nothing of path, query or header.  Any status is success here.  ERR_CONFIG:
 * http:// where it is not allowed, no file of CA certificates.  ERR_INTERNAL:
 * what no caller may ask: a URL that is none or has a user in it, control
 * bytes, more than 16 KiB of headers, a body with GET.
 */
#ifndef SLIPWAY_HTTP_HTTP_H
#define SLIPWAY_HTTP_HTTP_H

#include "core/arena.h"
#include "core/field.h"

#define HTTP_HEADERS 16 /* of one request */

enum http_method { HTTP_GET, HTTP_POST, HTTP_DELETE, HTTP__MAX };

struct http_header {
	const char *name;
	const char *value; /* no control bytes; may be a secret */
};

struct http_options {
	const char *tls_ca; /* PEM file in place of the system's; NULL */
	const char *agent;  /* User-Agent */
	bool allow_http;    /* plain http:// too */
	bool direct;        /* no proxy */
};

struct http_request {
	enum http_method method;
	const char *url;
	struct http_header header[HTTP_HEADERS]; /* ends with a NULL name */
	const char *body;                        /* NULL = none */
	size_t len;
	const char *type;    /* of the body */
	int64_t deadline_ms; /* for all of it, from now */
	size_t max;          /* bytes of the answer's body */
};

struct http_response {
	int status;
	const char *type; /* without parameters, lower case; NULL */
	const char *body; /* with a NUL behind it */
	size_t len;
	struct list headers; /* struct http_header, names in lower case */
	const char *url;     /* that answered, after redirects */
	bool large; /* ERR_UPSTREAM: a body of more than `max`, not packed */
};

struct http;

/* A client with its kept connections; the strings must outlive it.  From then on
 * the process ignores SIGPIPE.  ERR_CONFIG if libcurl was built without what
 * this needs. */
MUSTCHECK const struct err *http_open(const struct http_options *,
    struct http **out);
void http_close(struct http *);

/* One request; the response lives in the arena.
 *
 * A server that did not answer five times in a row (refused, timed out, TLS,
 * cut short) is not asked for ten seconds: calls fail at once with
 * ERR_UPSTREAM and say so; then one call tries it. */
MUSTCHECK const struct err *http_call(struct http *, struct arena *,
    const struct http_request *, struct http_response *out);

/* The first header of that name (lower case); NULL. */
const char *http_header(const struct http_response *, const char *name);
/* The target of a link relation (RFC 8288), absolute, NULL if there is none.
 * Always on the server that answered: where it calls itself by another name, as
 * behind a proxy, the address that was asked with the target's query. */
const char *http_link(struct arena *, const struct http_response *,
    const char *rel);
/* Seconds to wait by Retry-After (seconds or date, RFC 9110 10.2.3), bounded
 * to 0..3600; -1 if there is none or it is no such value. */
int64_t http_retry_after(const struct http_response *);
/* The server's clock (Date), in milliseconds since 1970; 0 = not told. */
int64_t http_date(const struct http_response *);
/* Percent-encoded but for unreserved characters (RFC 3986), for one segment of
 * a path or one value of a query or form. */
const char *http_escape(struct arena *, const char *text);
/* "scheme://host:port", the port always there; NULL if it is no such URL. */
const char *http_origin(struct arena *, const char *url);

#endif
