/* SPDX-License-Identifier: ISC */
/*
 * A resource is one value: its tag and its routes, which name shapes, handlers
 * and judges. Requests and the OpenAPI document find all routes through the
 * list of resources, which the program defines (api/resources.h).
 */
#ifndef SLIPWAY_WEB_RESOURCE_H
#define SLIPWAY_WEB_RESOURCE_H

#include "web/req.h"
#include "web/row.h"

struct resource {
	const char *tag; /* in the OpenAPI document: "projects" */
	/* Describes the tag; NULL if an earlier resource with the same tag
	 * does. */
	const char *about;
	const struct route *routes; /* ends with ROUTE_END */
	/* Headers that its requests may have, beside those of enum req_header:
	 * their names, and what they mean. At most one resource has any. */
	const char *const *header_names;
	const char *const *header_docs;
	size_t headers;
	/* Reads the files that it serves, when the service starts and reloads;
	 * NULL = it has none. */
	void (*load)(const struct settings *);
};

/* All resources, in the order of the OpenAPI document; ends with a NULL. */
extern const struct resource *const resources[];
/* The resource that has headers; NULL = none. */
const struct resource *resource_with_headers(void);

/* Shared parts of route tables. */
extern const struct route_param route_page[]; /* page, limit */
extern const enum err_code route_conflict[];  /* 409 */
extern const enum err_code route_limited[];   /* 429 */

/* clang-format off */
#define ROUTE_PAGE							\
	{ .name = "page", .type = PARAM_INT, .min = 1, .max = 1000000000, \
	    .fallback = 1, .doc = "Page number, from 1." },	\
	{ .name = "limit", .type = PARAM_INT, .min = 1, .max = 100,	\
	    .fallback = 20, .doc = "Number of items on a page." }
#define ROUTE_CURSOR							\
	{ .name = "limit", .type = PARAM_INT, .min = 1, .max = 100,	\
	    .fallback = 20, .doc = "Number of items on a page." },	\
	{ .name = "cursor", .type = PARAM_INT, .min = 1,		\
	    .max = 9999999999999999, .opaque = 1,			\
	    .doc = "Cursor: \"next\" of the previous page." }
#define PARAM_END { .name = NULL }
#define ID_MIN 1, .max = 9007199254740991
#define ROUTE_END { .path = NULL }

#define LIST(p, r, q, h, op, sum, o)					\
	{ .method = METHOD_GET, .path = (p), .role = (r), .query = (q),	\
	    .handler = (h), .operation = (op), .summary = (sum),	\
	    .out = &(o), .list = LIST_PAGES, .status = 200 }
#define SHOW(p, r, h, op, sum, o)					\
	{ .method = METHOD_GET, .path = (p), .role = (r), .handler = (h), \
	    .operation = (op), .summary = (sum), .out = &(o),		\
	    .status = 200 }
#define CREATE(p, r, h, j, op, sum, o)					\
	{ .method = METHOD_POST, .path = (p), .role = (r), .in = &(o),	\
	    .mode = JSON_CREATE, .handler = (h), .judge = (j),		\
	    .operation = (op), .summary = (sum), .out = &(o),		\
	    .status = 201, .errors = route_conflict }
#define CHANGE(p, r, h, j, op, sum, o)					\
	{ .method = METHOD_PUT, .path = (p), .role = (r),		\
	    .flags = ROUTE_GUARDED, .in = &(o), .mode = JSON_UPDATE,	\
	    .handler = (h), .judge = (j), .operation = (op),		\
	    .summary = (sum), .out = &(o), .status = 200,		\
	    .errors = route_conflict }
#define REMOVE(p, r, fl, h, op, sum, e)					\
	{ .method = METHOD_DELETE, .path = (p), .role = (r), .flags = (fl), \
	    .handler = (h), .operation = (op), .summary = (sum),	\
	    .status = 204, .errors = (e) }
/* clang-format on */

#endif
