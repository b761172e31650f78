/* SPDX-License-Identifier: ISC */
/*
 * Routes. Each resource has a table of routes, the only place for their paths
 * and roles. The OpenAPI document is generated from these tables.
 */
#ifndef SLIPWAY_WEB_ROW_H
#define SLIPWAY_WEB_ROW_H

#include "json/json.h"
#include "store/role.h"

struct req;

enum route_method {
	METHOD_GET,
	METHOD_POST,
	METHOD_PUT,
	METHOD_DELETE,
	METHOD__MAX
};

/* The workers to which nginx sends a route. */
enum route_pool {
	POOL_API,
	POOL_SLOW, /* calls the Git server, or needs much memory */
	POOL__MAX
};

enum route_flag {
	ROUTE_SLUG = 1 << 0,       /* {…} in the path is text, not a number */
	ROUTE_IDEMPOTENT = 1 << 1, /* accepts Idempotency-Key */
	ROUTE_RANGE = 1 << 2,      /* accepts Range; may return 206 and 416 */
	ROUTE_GUARDED = 1 << 3,    /* accepts If-Match; may return 412 */
	ROUTE_HIDDEN = 1 << 4,     /* not in the OpenAPI document */
	ROUTE_SAME_ORIGIN = 1 << 5, /* with the cookie, even GET counts as a
				     * write */
	/* a JSON body that the handler parses after checking its signature */
	ROUTE_SIGNED = 1 << 6,
	ROUTE_COOKIE = 1 << 7,    /* success sets or deletes cookies */
	ROUTE_BODILESS = 1 << 8,  /* the body may be missing */
	ROUTE_TAGGED = 1 << 9,    /* a list or an image with an ETag */
	ROUTE_DOCUMENT = 1 << 10, /* the body may be a large document */
};

enum route_list {
	LIST_NONE,  /* one item, or content of `type` */
	LIST_PAGES, /* page, limit, total, totalPages */
	LIST_KEYS,  /* limit, next */
	LIST_MORE,  /* page, limit, hasMore */
	LIST_BARE,  /* a plain array */
	LIST_DATA,  /* "data" alone */
};

enum param_type { PARAM_INT, PARAM_STR };

/* One query parameter. */
struct route_param {
	const char *name; /* as in the URL; NULL ends the table */
	enum param_type type;
	unsigned must;    /* 1 = required */
	int64_t min, max; /* PARAM_INT: value; PARAM_STR: length in code points;
			   * an empty text counts as absent */
	int64_t fallback; /* PARAM_INT */
	const char *const *values; /* PARAM_STR: the valid values */
	const char *named;         /* name of `values`, as in struct field */
	/* for the document */
	unsigned opaque; /* 1 = a number that is opaque text to clients */
	unsigned absent; /* 1 = absence differs from `fallback` */
	const char *doc;
};

typedef const struct err *route_handler(struct req *);
/* Adds faults that the shape cannot detect: conflicts with other records, other
 * members or the settings. Members that are missing or invalid are NULL or 0,
 * or have their stored value if this is a change. */
typedef const struct err *route_judge(struct req *, const void *item);

/* GET includes HEAD; OPTIONS works on every path. */
struct route {
	enum route_method method;
	const char *path; /* "/api/projects/{id}"; NULL ends the table */
	enum role role;   /* ROLE_NONE = no authentication */
	enum route_pool pool;
	unsigned flags;
	const struct shape *in; /* of the body; NULL = no body */
	enum json_mode mode;    /* JSON_UPDATE: the handler parses it over the
				 * row with req_update */
	const struct route_param *query; /* NULL = none */
	route_handler *handler;
	/* NULL = the shape suffices. Called here only for a body that the shape
	 * rejects, so that the response lists all errors at once. Otherwise the
	 * handler calls it with req_judge or req_update, while it holds locks
	 * on the rows that must not change. */
	route_judge *judge;
	/* With ROUTE_SIGNED: whether the request has a signature, valid or not,
	 * so that its body may be large. */
	bool (*is_signed)(const struct req *);
	/* for the document */
	const char *operation; /* operationId: "listProjects" */
	const char *summary;
	const char *doc;         /* description; NULL = none */
	const struct shape *out; /* of the response; NULL = none, or see
				  * `type` */
	enum route_list list;
	int status;                  /* of success */
	const char *type;            /* content type other than
				      * application/json */
	const enum err_code *errors; /* in addition to those that
				      * openapi_errors_of() derives; ends with
				      * ERR__MAX */
};

#endif
