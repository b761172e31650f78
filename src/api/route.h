/* SPDX-License-Identifier: ISC */
/*
 * What a route is, and the one function that serves it.  Each resource has a
 * table of routes, which alone knows their paths and roles; the OpenAPI document
 * is made of these tables.
 */
#ifndef SLIPWAY_API_ROUTE_H
#define SLIPWAY_API_ROUTE_H

#include "api/req.h"

enum route_method {
	METHOD_GET,
	METHOD_POST,
	METHOD_PUT,
	METHOD_DELETE,
	METHOD__MAX
};
extern const char *const route_methods[METHOD__MAX];

/* Which workers nginx sends it to. */
enum route_pool {
	POOL_API,
	POOL_SLOW, /* asks the Git server */
	POOL_LOG,  /* may wait */
	POOL__MAX
};

enum route_flag {
	ROUTE_SLUG = 1 << 0,       /* {…} in the path is text, not a number */
	ROUTE_IDEMPOTENT = 1 << 1, /* takes Idempotency-Key */
	ROUTE_RANGE = 1 << 2,      /* takes Range, may answer 206 and 416 */
	ROUTE_GUARDED = 1 << 3,    /* takes If-Match, may answer 412 */
	ROUTE_HIDDEN = 1 << 4,     /* not in the OpenAPI document */
	ROUTE_SAME_ORIGIN = 1 << 5, /* with the cookie, GET too is a write */
	ROUTE_SIGNED = 1
	    << 6, /* a JSON body that the handler reads itself, once
				* its signature was found right */
	ROUTE_COOKIE = 1 << 7, /* its success sets cookies, or ends them */
};

enum route_list {
	LIST_NONE,  /* one item, or what `type` says */
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
	unsigned must;    /* 1 = 400 without it */
	int64_t min, max; /* PARAM_INT: value; PARAM_STR: code points, where
			   * an empty text is as if it had not been sent */
	int64_t fallback; /* PARAM_INT */
	const char *const *values; /* PARAM_STR: one of these */
	const char *named;         /* of `values`, as in struct field */
	/* for the document */
	unsigned opaque; /* 1 = a number that is text to clients */
	unsigned absent; /* 1 = leaving it out is not the same as `fallback` */
	const char *doc;
};

typedef const struct err *route_handler(struct req *);
/* Adds to the request's faults what the shape cannot say of an item that was
 * sent: other records, other members, the settings.  Members that are missing
 * or faulty are NULL or 0, or as they were before a change. */
typedef const struct err *route_judge(struct req *, const void *item);

/* GET serves HEAD too; OPTIONS is answered for every path. */
struct route {
	enum route_method method;
	const char *path; /* "/api/projects/{id}"; NULL ends the table */
	enum role role;   /* ROLE_NONE = open to all */
	enum route_pool pool;
	unsigned flags;
	const struct shape *in; /* of the body; NULL = none is taken */
	enum json_mode mode;    /* JSON_UPDATE: the handler reads it over the
				 * row, by req_update */
	const struct route_param *query; /* NULL = none */
	route_handler *handler;
	/* NULL = the shape says all. Called for a body that the shape finds
	 * faulty, so that all is told at once; for others the handler asks, by
	 * req_judge or req_update, where it holds what must not change. */
	route_judge *judge;
	/* for the document */
	const char *operation; /* operationId: "listProjects" */
	const char *summary;
	const char *doc;         /* more about it; NULL */
	const struct shape *out; /* of the answer; NULL = none, or `type` */
	enum route_list list;
	int status;                  /* of success */
	const char *type;            /* content type, if not application/json */
	const enum err_code *errors; /* beyond those that follow from the
				      * rest; ends with ERR__MAX */
};

/* How large the body may be, by what came before it. */
size_t route_body_max(const struct req *);
/* Serves one request: `rq` holds arena, db, settings, keyring and in[]; the
 * answer stands in rq->answer, whatever happened.  `body` is complete, its
 * length the one announced. */
void route_serve(struct req *, const char *body, size_t len);
/* The same for what could not be read that far. */
void route_refuse(struct req *, const struct err *);

#endif
