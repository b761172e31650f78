/* SPDX-License-Identifier: ISC */
/*
 * Error values.
 *
 * A function that can fail returns `const struct err *`; NULL is success.  The
 * value lives in a static ring: it needs no freeing, and stays valid until the
 * (single-threaded) process has created ERR_MORE more errors.  The next error
 * overwrites it. err_keep() keeps an error for longer.
 *
 * `msg` is for the log and never leaves the machine.  `detail`, if not empty,
 * is a sentence for the client that says what to do.
 *
 * An error means that something could not be done.  Something wrong with an
 * input is a fault instead (core/fault.h); faults_check() makes an error of the
 * faults if the input as a whole is rejected.
 */
#ifndef SLIPWAY_CORE_ERR_H
#define SLIPWAY_CORE_ERR_H

#define ERR_MORE 8

#define MUSTCHECK __attribute__((warn_unused_result))
#define PRINTFLIKE(f, a) __attribute__((format(printf, f, a)))

/* clang-format off */
/* enumerator, `code` of the REST contract, HTTP status (RFC 9110), exit status
 * (sysexits.h), public text */
#define ERR_TABLE(X)							\
	X(ERR_INTERNAL, "internal", 500, 70,				\
	    "The server met an unexpected condition.")			\
	X(ERR_BAD_REQUEST, "bad_request", 400, 65,			\
	    "The request is malformed.")			\
	X(ERR_UNAUTHENTICATED, "unauthenticated", 401, 77,		\
	    "A valid token or session is required.")			\
	X(ERR_FORBIDDEN, "forbidden", 403, 77,				\
	    "Your role does not allow this.")				\
	X(ERR_NOTFOUND, "not_found", 404, 66,				\
	    "The resource was not found.")				\
	X(ERR_METHOD, "method_not_allowed", 405, 64,			\
	    "The resource does not support this method.")			\
	X(ERR_CONFLICT, "conflict", 409, 65,				\
	    "The request conflicts with the state of the resource.")	\
	X(ERR_LOCKED, "locked", 409, 75,				\
	    "Deployments are locked.")					\
	X(ERR_PRECONDITION, "precondition_failed", 412, 65,		\
	    "The resource has changed since it was read.")		\
	X(ERR_TOO_LARGE, "payload_too_large", 413, 65,			\
	    "The body exceeds 1 MiB, or 32 MiB for a push event.")	\
	X(ERR_MEDIA_TYPE, "unsupported_media_type", 415, 65,		\
	    "The body must be application/json.")			\
	X(ERR_RANGE, "range_not_satisfiable", 416, 65,			\
	    "The range is outside the resource.")			\
	X(ERR_INVALID, "validation_failed", 422, 65,			\
	    "The request is invalid.")					\
	X(ERR_RATE, "rate_limited", 429, 75,				\
	    "Too many requests.")					\
	X(ERR_UPSTREAM, "upstream_failed", 502, 69,			\
	    "The Git server returned an error.")			\
	X(ERR_UNAVAILABLE, "unavailable", 503, 75,			\
	    "The service is temporarily unavailable.")		\
	X(ERR_UPSTREAM_TIMEOUT, "upstream_timeout", 504, 75,		\
	    "The Git server did not respond in time.")			\
	X(ERR_CONFIG, "unavailable", 503, 78,				\
	    "The service is not configured for this.")
/* clang-format on */

enum err_code {
#define X(code, name, http, status, text) code,
	ERR_TABLE(X)
#undef X
	    ERR__MAX
};

struct err {
	enum err_code code;
	int sys;          /* errno or a library's error number, 0 if none */
	char msg[512];    /* for the log */
	char detail[512]; /* for the client, "" = the table's text */
};

/* What a client may learn about a code. */
struct err_kind {
	const char *name;
	int http;
	int exit;
	const char *text;
};
extern const struct err_kind err_kinds[ERR__MAX];

MUSTCHECK const struct err *err_new(enum err_code, const char *fmt, ...)
    PRINTFLIKE(2, 3);
/* The text goes to the log and, as `detail`, to the client. */
MUSTCHECK const struct err *err_public(enum err_code, const char *fmt, ...)
    PRINTFLIKE(2, 3);
/* ERR_INTERNAL with the text of errno appended. */
MUSTCHECK const struct err *err_errno(const char *fmt, ...) PRINTFLIKE(1, 2);
/* As err_new, with the error number that a library or server returned. */
MUSTCHECK const struct err *err_number(enum err_code, int number,
    const char *fmt, ...) PRINTFLIKE(3, 4);
/* As err_public, with such a number. */
MUSTCHECK const struct err *err_public_number(enum err_code, int number,
    const char *fmt, ...) PRINTFLIKE(3, 4);
/* Prefixes the message with a text ("text: message"); keeps code and detail. */
MUSTCHECK const struct err *err_wrap(const struct err *e, const char *fmt, ...)
    PRINTFLIKE(2, 3);
/* The sentence is for the client; the log gets "sentence: message of the
 * cause".  Keeps the cause's number. */
MUSTCHECK const struct err *err_explain(const struct err *cause, enum err_code,
    const char *fmt, ...) PRINTFLIKE(3, 4);
/* The same texts with another code and number, for a caller to whom the error
 * means something else. */
MUSTCHECK const struct err *err_as(const struct err *, enum err_code,
    int number);
/* Copies the error, so that it outlives the ring; returns the copy. */
MUSTCHECK const struct err *err_keep(struct err *to, const struct err *);
/* Text for a person who may see both: the detail if there is one, else the
 * message. */
const char *err_words(const struct err *);

#endif
