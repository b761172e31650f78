/* SPDX-License-Identifier: ISC */
/*
 * An HTTP client (RFC 9110) based on libcurl, for servers that may be slow,
 * silent, lying or dead.
 *
 * Every call ends by its deadline and stores at most `max` bytes of the body,
 * also of a compressed one.  TLS is always verified.  Only GET follows
 * redirects, at most three, and only to the same scheme, host and port:
 * credentials never reach another server.  Proxies are those of the environment
 * (curl(1)); cookies, .netrc and protocols other than HTTP are disabled.
 *
 * ERR_UPSTREAM_TIMEOUT: no response in time.  ERR_UPSTREAM: connection refused,
 * unknown host, TLS not verified, response cut short, too large or not HTTP,
 * redirect to another server.  Both describe the failure for the client, with
 * the server's host but nothing of path, query or header.  Any status is
 * success here.  ERR_CONFIG: http:// where it is not allowed, an address that is
 * not allowed, CA file not readable.  ERR_INTERNAL: requests that no caller may make: an invalid URL or
 * one that contains a user, control bytes, more than 16 KiB of headers, a body
 * with GET.
 */
#ifndef SLIPWAY_HTTP_HTTP_H
#define SLIPWAY_HTTP_HTTP_H

#include "core/arena.h"
#include "core/field.h"

#define HTTP_HEADERS 16 /* of one request */

enum http_method { HTTP_GET, HTTP_POST, HTTP_PUT, HTTP_DELETE, HTTP__MAX };

struct http_header {
	const char *name;
	const char *value; /* no control bytes; may be a secret */
};

struct http_options {
	const char *tls_ca; /* PEM file that replaces the system's; NULL */
	const char *agent;  /* User-Agent */
	bool allow_http;    /* also permit plain http:// */
	bool direct;        /* no proxy */
	/* Only public addresses and these networks (core/network.h) are
	 * connected to; NULL = all addresses.  Requires `direct`. */
	const char *networks;
};

struct http_request {
	enum http_method method;
	const char *url;
	struct http_header header[HTTP_HEADERS]; /* ends with a NULL name */
	const char *body;                        /* NULL = none */
	size_t len;
	const char *type;    /* of the body */
	int64_t deadline_ms; /* for the whole call, from now */
	size_t max;          /* bytes of the response body */
};

struct http_response {
	int status;
	const char *type; /* without parameters, lower case; NULL */
	const char *body; /* NUL-terminated */
	size_t len;
	struct list headers; /* struct http_header, names in lower case */
	const char *url;     /* that responded, after redirects */
	bool large;          /* ERR_UPSTREAM: a body of more than `max`, not
		     * compressed */
};

struct http;

/* Creates a client that keeps connections open.  The strings must outlive it.
 * From then on the process ignores SIGPIPE.  ERR_CONFIG if libcurl lacks a
 * required feature. */
MUSTCHECK const struct err *http_open(const struct http_options *,
    struct http **out);
void http_close(struct http *);

/* Performs one request; the response lives in the arena.
 *
 * After five failures in a row (refused, timed out, TLS, cut short), the client
 * does not call the server for ten seconds: calls fail at once with
 * ERR_UPSTREAM and say so.  Then one call tries the server again. */
MUSTCHECK const struct err *http_call(struct http *, struct arena *,
    const struct http_request *, struct http_response *out);

/* Many requests at once, each to its own server: they wait for each other no
 * more than for a dead one.  There is no breaker, and no redirect is followed. */
struct http_many;
MUSTCHECK const struct err *http_many_open(const struct http_options *,
    size_t max, struct http_many **out);
/* Begins a request; it and its strings must live until it has ended.  An error
 * is that of the request: it has not begun. */
MUSTCHECK const struct err *http_many_begin(struct http_many *, struct arena *,
    const struct http_request *, void *context);
/* How many have begun and not been returned by http_many_next(). */
size_t http_many_count(const struct http_many *);
/* Sends and receives for at most that long. */
void http_many_wait(struct http_many *, int64_t ms);
/* Returns the context of a request that has ended, NULL if there is none; its
 * response lives in the arena it began with. */
void *http_many_next(struct http_many *, struct http_response *out,
    const struct err **e);

/* The value of the first header of that name (lower case); NULL if missing. */
const char *http_header(const struct http_response *, const char *name);
/* The absolute target of a link relation (RFC 8288); NULL if missing.  It is
 * always on the server that responded: if the target has another host, as
 * behind a proxy, the result is the requested address with the target's
 * query. */
const char *http_link(struct arena *, const struct http_response *,
    const char *rel);
/* Seconds to wait by Retry-After (seconds or date, RFC 9110 10.2.3), limited to
 * 0..3600; -1 if missing or invalid. */
int64_t http_retry_after(const struct http_response *);
/* The server's clock (Date), in milliseconds since 1970; 0 if missing. */
int64_t http_date(const struct http_response *);
/* Percent-encodes all but unreserved characters (RFC 3986), for one segment of
 * a path or one value of a query or form. */
const char *http_escape(struct arena *, const char *text);
/* "scheme://host:port", always with the port; NULL if the URL is invalid. */
const char *http_origin(struct arena *, const char *url);

#endif
