/* SPDX-License-Identifier: ISC */
/*
 * Error values.
 *
 * A function that can fail returns `const struct err *`; NULL is success.
 * The value lives in a static ring: it needs no freeing, and it stays valid
 * while the (single-threaded) process makes ERR_MORE more errors.  The next one
 * takes its place.  err_keep() keeps an error for longer.
 *
 * `msg` is for the log and never leaves the machine.  `detail`, where it is
 * not empty, is a sentence for the client that says what to do.
 *
 * An error means that something could not be done.  What is wrong with an input
 * is no error but a fault (core/fault.h); faults_check() makes an error of them
 * where the input as a whole is rejected.
 */
#ifndef SLIPWAY_CORE_ERR_H
#define SLIPWAY_CORE_ERR_H

#define ERR_MORE 8

#define MUSTCHECK __attribute__((warn_unused_result))
#define PRINTFLIKE(f, a) __attribute__((format(printf, f, a)))

/* clang-format off */
/* enumerator, `code` of the REST contract, HTTP status (RFC 9110), exit
 * status (sysexits.h), public text */
#define ERR_TABLE(X)							\
	X(ERR_INTERNAL, "internal", 500, 70,				\
	    "The server met an unexpected condition.")			\
	X(ERR_BAD_REQUEST, "bad_request", 400, 65,			\
	    "The request could not be understood.")			\
	X(ERR_UNAUTHENTICATED, "unauthenticated", 401, 77,		\
	    "A valid token or session is needed.")			\
	X(ERR_FORBIDDEN, "forbidden", 403, 77,				\
	    "Your role does not allow this.")				\
	X(ERR_NOTFOUND, "not_found", 404, 66,				\
	    "There is no such resource.")				\
	X(ERR_METHOD, "method_not_allowed", 405, 64,			\
	    "This resource does not know that method.")			\
	X(ERR_CONFLICT, "conflict", 409, 65,				\
	    "The request conflicts with the state of the resource.")	\
	X(ERR_PRECONDITION, "precondition_failed", 412, 65,		\
	    "The resource has changed since it was read.")		\
	X(ERR_TOO_LARGE, "payload_too_large", 413, 65,			\
	    "The body is larger than 1 MiB, or a push event than 32 MiB.")	\
	X(ERR_MEDIA_TYPE, "unsupported_media_type", 415, 65,		\
	    "The body must be application/json.")			\
	X(ERR_RANGE, "range_not_satisfiable", 416, 65,			\
	    "The range lies outside of the resource.")			\
	X(ERR_INVALID, "validation_failed", 422, 65,			\
	    "The input has faults.")					\
	X(ERR_RATE, "rate_limited", 429, 75,				\
	    "Too many requests.")					\
	X(ERR_UPSTREAM, "upstream_failed", 502, 69,			\
	    "The Git server answered with an error.")			\
	X(ERR_UNAVAILABLE, "unavailable", 503, 75,			\
	    "The service is not available for the moment.")		\
	X(ERR_UPSTREAM_TIMEOUT, "upstream_timeout", 504, 75,		\
	    "The Git server did not answer in time.")			\
	X(ERR_CONFIG, "internal", 500, 78,				\
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
	int sys;          /* errno or number of the library, 0 if none */
	char msg[512];    /* for the log */
	char detail[512]; /* for the client, "" = the table's text */
};

/* What the outside may know of a code. */
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
MUSTCHECK const struct err *err_tell(enum err_code, const char *fmt, ...)
    PRINTFLIKE(2, 3);
/* ERR_INTERNAL with errno and its text appended. */
MUSTCHECK const struct err *err_errno(const char *fmt, ...) PRINTFLIKE(1, 2);
/* As err_new, with the number that a library or server gave. */
MUSTCHECK const struct err *err_number(enum err_code, int number,
    const char *fmt, ...) PRINTFLIKE(3, 4);
/* Both at once. */
MUSTCHECK const struct err *err_tell_number(enum err_code, int number,
    const char *fmt, ...) PRINTFLIKE(3, 4);
/* "text: what e said", same code, same detail. */
MUSTCHECK const struct err *err_wrap(const struct err *e, const char *fmt, ...)
    PRINTFLIKE(2, 3);
/* The sentence for the client, "sentence: what the cause said" for the log; with
 * the cause's number. */
MUSTCHECK const struct err *err_explain(const struct err *cause, enum err_code,
    const char *fmt, ...) PRINTFLIKE(3, 4);
/* The same texts with another code and number, for a caller to whom the error
 * means something else. */
MUSTCHECK const struct err *err_as(const struct err *, enum err_code,
    int number);
/* Copies the error, so that it outlives the ring; returns the copy. */
MUSTCHECK const struct err *err_keep(struct err *to, const struct err *);
/* What a person is shown who may see both: the detail, else the message. */
const char *err_words(const struct err *);

#endif
