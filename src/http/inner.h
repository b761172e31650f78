/* SPDX-License-Identifier: ISC */
/* Shared by the files of this folder only. */
#ifndef SLIPWAY_HTTP_INNER_H
#define SLIPWAY_HTTP_INNER_H

#include <curl/curl.h>

#include "core/buf.h"
#include "http/http.h"

/* Limit for what a server sends as status lines and headers, including those of
 * interim responses. */
#define HTTP_HEAD_MAX ((size_t)64 << 10)

/* Servers that did not respond, by origin. */
#define BREAKER_SERVERS 8
#define BREAKER_ORIGIN 300

struct breaker {
	struct {
		char origin[BREAKER_ORIGIN];
		int failed;       /* failures in a row */
		int64_t until;    /* not called before (time_mono_ms) */
		int64_t asked_at; /* the least recently called is replaced */
	} server[BREAKER_SERVERS];
};

/* Limit for all headers of a request. */
#define SENT_MAX ((size_t)16 << 10)
/* The client's own headers in addition to the caller's, and their length
 * without the value of Content-Type. */
#define OWN_HEADERS 2
#define OWN_LEN 32

struct http {
	CURL *curl;
	pid_t owner; /* connections belong to one process */
	struct http_options options;
	struct breaker breaker;
};

/* One request and its response on the wire. */
struct exchange {
	const struct http_request *request;
	const char *url;
	int64_t left_ms;
	struct buf lines; /* headers as received */
	size_t head;      /* bytes of headers, including those of interim
			   * responses */
	struct buf body;
	bool large;
	const char *networks; /* of struct http_options */
	bool blocked;         /* an address lies outside of them */
	char text[CURL_ERROR_SIZE];
};

/* Whether a caller may make the request. */
bool request_fit(const struct http_request *);
/* Builds the request's headers as libcurl's list in memory of the caller, so
 * that secrets in them can be cleared. */
void headers_build(const struct http_request *, char text[SENT_MAX],
    struct curl_slist *node);
/* Sets the options of h->curl for the request. */
CURLcode exchange_set(const struct http *h, struct exchange *,
    struct curl_slist *headers);
/* Returns the "host:port" of an origin. */
const char *host_of(const char *origin);
/* The error of a call that failed; the breaker counts it unless `h` is NULL. */
const struct err *call_failed(struct http *h, const char *origin, CURLcode rc,
    const struct exchange *);
void response_build(struct arena *, const struct exchange *, int status,
    struct http_response *out);

/* Initializes what the whole process shares. */
MUSTCHECK const struct err *http_library_start(void);

/* How libcurl's errors are reported. */
struct failure {
	CURLcode rc;
	enum err_code code;
	bool answered; /* no network failure: the breaker does not count it */
	const char *text;
};
const struct failure *http_failure(CURLcode);

/* Milliseconds until that server may be called; 0 = now. */
int64_t breaker_wait(struct breaker *, const char *origin);
void breaker_answered(struct breaker *, const char *origin);
void breaker_failed(struct breaker *, const char *origin);

/* Resolves a reference against an absolute URL (RFC 3986 5) and drops its
 * fragment; NULL if that is impossible. */
const char *url_resolve(struct arena *, const char *base, const char *ref);
/* Whether it is an http or https URL of printable ASCII without blanks and
 * without a user. */
bool url_fit(const char *url);
/* Whether it is a valid header name (RFC 9110 5.1). */
bool header_name_fit(const char *name);
/* Parses header lines as received ("Name: value\r\n"…) into a list; leaves out
 * folded lines and those with control bytes. */
void header_list(struct arena *, const struct buf *lines, struct list *out);
/* The media type without parameters, in lower case; NULL if empty. */
const char *header_media_type(struct arena *, const char *value);

#endif
