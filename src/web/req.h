/* SPDX-License-Identifier: ISC */
/*
 * A request as handlers see it, and the functions to respond.
 *
 * When a handler runs, the path has matched, the role suffices, and the query
 * and the body are parsed according to their tables. The handler calls one of
 * the answer functions, or none for 204, and returns. An error that it returns
 * becomes problem+json, with `faults` as its `errors`.
 */
#ifndef SLIPWAY_WEB_REQ_H
#define SLIPWAY_WEB_REQ_H

#include "access/access.h"
#include "core/buf.h"
#include "core/settings.h"
#include "crypto/keyring.h"
#include "json/json.h"
#include "store/page.h"
#include "store/user.h"
#include "web/uri.h"

#define REQ_BODY_MAX ((size_t)1 << 20)
#define REQ_DOCUMENT_MAX ((size_t)8 << 20) /* import of a project */
#define REQ_EVENT_MAX ((size_t)32 << 20)   /* signed push event */
#define REQ_IDS 2                          /* {…} in one path */
#define REQ_PARAMS 12                      /* query parameters of one route */
#define REQ_SENT 32    /* headers of a resource that has some */
#define REQ_HEADERS 12 /* headers that one response may add */

struct scoreboard;
struct scoreboard_place;
struct route;
struct route_param;

/* Request headers and parameters; NULL if not sent. */
enum req_header {
	IN_METHOD,
	IN_URI, /* as sent, with the query */
	IN_CONTENT_TYPE,
	IN_CONTENT_ENCODING,
	IN_CONTENT_LENGTH,
	IN_AUTHORIZATION,
	IN_COOKIE,
	IN_HOST,
	IN_ORIGIN,
	IN_SEC_FETCH_SITE,
	IN_IF_MATCH,
	IN_IF_NONE_MATCH,
	IN_RANGE,
	IN_IF_RANGE,
	IN_IDEMPOTENCY_KEY,
	IN_REQUEST_ID,
	IN_REQUEST_MSEC, /* when nginx sent it: seconds, dot, three digits */
	IN_REMOTE_ADDR,
	IN_REMOTE_USER, /* user that nginx authenticated */
	IN_HTTPS,       /* "on" with TLS */
	IN_WAIT_LEFT,   /* of a request that has waited: milliseconds… */
	IN_WAIT_AGAIN,  /* …and how often it may wait again */
	IN__MAX
};

struct req_value {
	bool set; /* sent; otherwise n is the default */
	int64_t n;
	const char *s; /* NULL if not sent */
};

struct out_header {
	const char *name;
	const char *value;
};

/* A page of a list of unknown length. */
struct page_part {
	int64_t page; /* from 1 */
	int64_t limit;
	bool has_more;
};

struct req;
/* Produces the next part of a streamed body: at most `max` bytes from `offset`,
 * valid until the next call. An error aborts the response, as does an empty
 * part before the announced length. */
typedef const struct err *req_source(struct req *, int64_t offset, size_t max,
    struct blob *out);

/* Reads a page of the route's list and sets its total. ERR_TOO_LARGE if it does
 * not fit into the request's memory. */
typedef const struct err *req_pager(struct req *, struct page *,
    struct list *out);

/* A page that is sent item by item. */
struct answer_pages {
	const struct shape *shape;
	req_pager *read;
	struct page page;
	int64_t written; /* items */
	size_t taken;    /* bytes sent of the piece in the body */
	bool ended;
};

struct answer {
	int status;       /* 0 = the route's status */
	const char *type; /* content type; NULL = application/json */
	struct buf body;
	req_source *source; /* replaces body if set */
	int64_t start;      /* first byte to send */
	int64_t length;     /* number of bytes; -1 = until the source ends */
	struct answer_pages pages;
	const char *etag;  /* without quotes; NULL = none */
	int64_t max_age;   /* seconds that anyone may cache it; 0 = none */
	bool is_elsewhere; /* nginx sends that of an internal address */
	struct out_header header[REQ_HEADERS];
	size_t headers;
};

/* What audited.h knows about the changes of a request. */
struct audited_state {
	bool is_said;
	const char *changes; /* JSON; NULL = the members of the body */
	const char *action;  /* NULL = the operation of the route */
};

struct req {
	struct arena *a; /* released at the end of the request */
	struct db *db;
	const struct settings *settings;
	struct keyring *keyring;       /* NULL = no key file, or a plain read */
	struct public_key *public_key; /* the same; seals variables */
	const struct access *access;   /* its forge is NULL if none is set */
	struct scoreboard *scoreboard; /* counters of the whole service */
	struct scoreboard_place *place; /* this worker's place */
	const struct err *unready;      /* why the database is not usable */
	const struct route *route;
	const char *request_id;
	int client_fd; /* the connection; -1 = none */
	const char *in[IN__MAX];
	const char
	    *header[REQ_SENT]; /* those of the resource that has any; NULL
				       * if not sent */
	const char *path;      /* decoded, without the query */
	const char *who_text;  /* for the log: username or "-" */
	struct principal who;  /* user_id 0 if the route needs no
				      * authentication */
	enum role role; /* of `who`, in the project that the request names */
	int64_t member; /* a guest, whose lists show only what belongs to the
			 * projects of which it is a member; 0 = all */
	bool is_scoped; /* the role is final (scope.h) */
	int64_t id[REQ_IDS];             /* {id}… in the path, in order */
	const char *slug[REQ_IDS];       /* the same as text */
	struct uri_pair pair[URI_PAIRS]; /* the query as sent */
	size_t pairs;
	struct req_value query[REQ_PARAMS]; /* in the order of the table */
	void *body;       /* parsed route->in; NULL for an update */
	const char *text; /* body as sent, if there is a route->in */
	size_t len;
	struct faults faults;
	/* `error` of the problem (RFC 8628, 3.5); NULL = it has none */
	const char *device_error;
	struct audited_state audited;
	struct answer answer;
};

/* Milliseconds that the request waited for a worker, up to an hour; 0 if
 * unknown. */
int64_t req_waited(const struct req *);
/* Whether the client, or nginx on its behalf, has closed the connection. */
bool req_client_gone(const struct req *);
/* The value of a query parameter of the route. */
int64_t req_int(const struct req *, const char *name);
/* NULL if it was not sent. */
const char *req_str(const struct req *, const char *name);
/* `page` and `limit`. */
struct page req_page(const struct req *);

/* ERR_INTERNAL if the request writes and its handler did not say what it has
 * changed (audited.h). */
MUSTCHECK const struct err *req_check_audited(const struct req *);
/* Like db_transaction(), for a body that says what it changes (audited.h).
 * Memory of the request that the body allocates is released before the body
 * runs again. Inside the transaction of another request, it is part of that
 * one. */
MUSTCHECK const struct err *req_transaction(struct req *, db_body *,
    void *context);
/* Checks If-Match and If-None-Match against the version of the row that the
 * handler has locked, identified by the first id in the path; 0 = the request
 * creates it. ERR_PRECONDITION. */
MUSTCHECK const struct err *req_match(const struct req *, const struct shape *,
    int64_t version);
/* For POST, inside the transaction: runs the route's judge on the body.
 * ERR_INVALID with faults, or ERR_CONFLICT if all of them are conflicts. */
MUSTCHECK const struct err *req_judge(struct req *);
/* For PUT, inside the transaction: checks If-Match, parses the body over
 * `item`, which holds the locked row, and runs the route's judge.
 * ERR_PRECONDITION, and as above. */
MUSTCHECK const struct err *req_update(struct req *, const struct shape *,
    int64_t version, void *item);
/* Handles a name that was free when judged but was taken before the write:
 * returns the conflict with its pointer. Other errors are returned
 * unchanged. */
MUSTCHECK const struct err *req_taken(struct req *, const struct err *,
    const void *item);

/* Responds with an object and its ETag, made of the version and a hash of the
 * body. If-Match compares the version only, so that members that change by
 * themselves (workspaceStatus) do not matter. With version 0 the tag is the
 * hash alone. */
void answer_item(struct req *, const struct shape *, const void *item,
    int64_t version);
/* Responds with JSON text and the ETag of a version (-1 = none). */
void answer_json(struct req *, const char *text, size_t len, int64_t version);
/* Responds with {"data":[…],"pagination":{…}}, Link and X-Total-Count for the
 * page that the query requests. A page that is too large for memory is read and
 * sent item by item. */
MUSTCHECK const struct err *answer_pages(struct req *, const struct shape *,
    req_pager *);
/* The same for a list without a total. */
void answer_more(struct req *, const struct shape *, const struct list *,
    const struct page_part *);
/* The same with a cursor; next 0 = last page. */
void answer_cursor(struct req *, const struct shape *, const struct list *,
    int64_t limit, int64_t next);
/* Gives the response the ETag of its body. */
void answer_tag(struct req *);
/* Responds with a copy of the bytes. */
void answer_bytes(struct req *, const char *type, const void *data, size_t len);
/* Responds with `length` bytes from `start`, read from the source while they
 * are sent, so the response need not fit into memory; -1 = until the source
 * ends. */
void answer_stream(struct req *, const char *type, req_source *, int64_t start,
    int64_t length);
void answer_status(struct req *, int status);
/* Adds a header; a value with control bytes is dropped and logged. */
void answer_header(struct req *, const char *name, const char *fmt, ...)
    PRINTFLIKE(3, 4);
/* Sets Location: "/api/projects/%lld", id. */
void answer_location(struct req *, const char *fmt, ...) PRINTFLIKE(2, 3);

#endif
