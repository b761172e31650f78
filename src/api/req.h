/* SPDX-License-Identifier: ISC */
/*
 * A request as handlers see it, and the ways to answer it.
 *
 * When a handler runs, the path matched, the role suffices, the query and the
 * body were read by their tables.  It calls one of the answer functions, or
 * none for 204, and returns; what it returns as an error becomes
 * problem+json, with `faults` as its `errors`.
 */
#ifndef SLIPWAY_API_REQ_H
#define SLIPWAY_API_REQ_H

#include "access/access.h"
#include "api/uri.h"
#include "core/buf.h"
#include "core/settings.h"
#include "crypto/keyring.h"
#include "deploy/context.h"
#include "forge/hook.h"
#include "json/json.h"
#include "store/page.h"
#include "store/user.h"

#define REQ_BODY_MAX ((size_t)1 << 20)
#define REQ_EVENT_MAX ((size_t)32 << 20) /* of a signed push event */
#define REQ_IDS 2                        /* {…} in one path */
#define REQ_PARAMS 8                     /* query parameters of one route */
#define REQ_HEADERS 12                   /* that one answer may add */

struct board;
struct board_place;
struct route;
struct route_param;

/* What came in beside path and body; each NULL if it was not sent. */
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
	IN_REMOTE_USER, /* whom nginx let in */
	IN_HTTPS,       /* "on" behind TLS */
	IN__MAX
};

struct req_value {
	bool set; /* sent; else the default holds */
	int64_t n;
	const char *s; /* NULL if not sent */
};

struct out_header {
	const char *name;
	const char *value;
};

/* A page of a list whose end is not known. */
struct page_part {
	int64_t page; /* from 1 */
	int64_t limit;
	bool has_more;
};

struct req;
/* Hands out more of a streamed body: at most `max` bytes from `offset` on,
 * valid until the next call. An error breaks the answer off, and so does
 * nothing where the length was announced. */
typedef const struct err *req_source(struct req *, int64_t offset, size_t max,
    struct blob *out);

/* Reads a page of the route's list; sets its total.  ERR_TOO_LARGE if it does
 * not fit into the request's memory. */
typedef const struct err *req_pager(struct req *, struct page *,
    struct list *out);

/* A page that is sent item by item. */
struct answer_pages {
	const struct shape *shape;
	req_pager *read;
	struct page page;
	int64_t written; /* items */
	size_t taken;    /* of the piece that stands in the body */
	bool ended;
};

struct answer {
	int status;       /* 0 = the route's own */
	const char *type; /* of the content; NULL = application/json */
	struct buf body;
	req_source *source; /* takes the place of body, then… */
	int64_t start;      /* …from here… */
	int64_t length;     /* …so many bytes; -1 = until it ends */
	struct answer_pages pages;
	const char *etag; /* without quotes; NULL = none */
	struct out_header header[REQ_HEADERS];
	size_t headers;
};

struct req {
	struct arena *a; /* ends with the request */
	struct db *db;
	const struct settings *settings;
	const struct keyring *keyring; /* NULL: no key file, nothing sealed */
	const struct public_key *public_key; /* seals variables; NULL = none */
	const struct access *access; /* its forge is NULL if none is set */
	struct board *board;         /* counters of the whole service */
	struct board_place *place;   /* this worker's on it */
	const struct err *unready;   /* why the database cannot be used */
	const struct route *route;
	const char *request_id;
	int client_fd; /* the connection; -1 = none */
	int listen_fd; /* where others wait */
	const char *in[IN__MAX];
	const char *hook[HOOK__MAX]; /* what came with a push event */
	const char *path;            /* decoded, without the query */
	const char *who_text;        /* for the log: user name or "-" */
	struct principal who;        /* user_id 0 where a route is open */
	enum role role;              /* of `who` */
	int64_t id[REQ_IDS];       /* of {id}… in the path, in their order */
	const char *slug[REQ_IDS]; /* the same as text */
	struct uri_pair pair[URI_PAIRS]; /* the query as sent */
	size_t pairs;
	struct req_value query[REQ_PARAMS]; /* in the order of the table */
	void *body;       /* route->in, read; NULL if updating */
	const char *text; /* the body as sent, route->in only */
	size_t len;
	struct faults faults;
	struct answer answer;
};

/* Milliseconds that it waited for a worker, up to an hour; 0 if that is not
 * known. */
int64_t req_waited(const struct req *);
/* Whether the client, or nginx on its behalf, has given up. */
bool req_client_gone(const struct req *);
/* A query parameter of the route's table, by its name. */
int64_t req_int(const struct req *, const char *name);
/* NULL if it was not sent. */
const char *req_str(const struct req *, const char *name);
/* `page` and `limit`. */
struct page req_page(const struct req *);

/* The context for the rules of deploying, with results in that arena. */
struct deploy req_deploy(struct req *, struct arena *);

/* As db_transaction(); what the body took of the request's memory is given back
 * before it is run again. */
MUSTCHECK const struct err *req_transaction(struct req *, db_body *,
    void *context);
/* If-Match and If-None-Match against the version of the row that the handler
 * holds locked, that of the first id in the path; ERR_PRECONDITION. */
MUSTCHECK const struct err *req_match(const struct req *, const struct shape *,
    int64_t version);
/* For POST, inside the transaction: what the route's judge says of the body.
 * ERR_INVALID with faults, ERR_CONFLICT if all are conflicts. */
MUSTCHECK const struct err *req_judge(struct req *);
/* For PUT, inside the transaction: If-Match, then the body over `item`, which
 * holds the locked row, then the route's judge. ERR_PRECONDITION, and as
 * above. */
MUSTCHECK const struct err *req_update(struct req *, const struct shape *,
    int64_t version, void *item);
/* Of a name that the judge found free and that another took before it was
 * written: the conflict with its pointer. Other errors pass. */
MUSTCHECK const struct err *req_taken(struct req *, const struct err *,
    const void *item);

/* The object of a single item with its ETag: version and a hash of the body;
 * If-Match looks at the version only, so that members which change by
 * themselves (workspaceStatus) do not fail it. A version of 0 is no part of
 * the tag: the hash alone tells. */
void answer_item(struct req *, const struct shape *, const void *item,
    int64_t version);
/* JSON text made elsewhere, with the ETag of a version (-1 = none). */
void answer_json(struct req *, const char *text, size_t len, int64_t version);
/* {"data":[…],"pagination":{…}} with Link and X-Total-Count, of the page that
 * the query names.  A page that is too large for memory is read and sent item
 * by item. */
MUSTCHECK const struct err *answer_pages(struct req *, const struct shape *,
    req_pager *);
/* The same of a list that nobody has counted. */
void answer_more(struct req *, const struct shape *, const struct list *,
    const struct page_part *);
/* The same, by key; next 0 = the last page. */
void answer_cursor(struct req *, const struct shape *, const struct list *,
    int64_t limit, int64_t next);
/* Bytes of any type; they are copied. */
void answer_bytes(struct req *, const char *type, const void *data, size_t len);
/* `length` bytes from `start` on, taken from the source while they are sent,
 * so that no answer has to fit into memory; with -1 until it hands out none. */
void answer_stream(struct req *, const char *type, req_source *, int64_t start,
    int64_t length);
void answer_status(struct req *, int status);
/* Further header fields; a value with control bytes is dropped and logged. */
void answer_header(struct req *, const char *name, const char *fmt, ...)
    PRINTFLIKE(3, 4);
/* Location: "/api/projects/%lld", id. */
void answer_location(struct req *, const char *fmt, ...) PRINTFLIKE(2, 3);

#endif
