/* SPDX-License-Identifier: ISC */
/*
 * The resources of the API. A resource is one value at the end of its file of
 * handlers: its tag and its routes, which name shapes, handlers and judges. To
 * add one, add a line to the list below; requests and the OpenAPI document find
 * all routes through this list.
 */
#ifndef SLIPWAY_API_RESOURCES_H
#define SLIPWAY_API_RESOURCES_H

#include "api/req.h"
#include "api/row.h"

/* In the order of the OpenAPI document. */
/* clang-format off */
#define RESOURCES(X)							\
	X(boards)							\
	X(projects)							\
	X(imports)							\
	X(members)							\
	X(badges)							\
	X(deploy_keys)							\
	X(pipelines)							\
	X(steps)							\
	X(templates)							\
	X(environments)							\
	X(variables)							\
	X(locks)							\
	X(schedules)							\
	X(notifiers)							\
	X(deployment_reads)						\
	X(deployments)							\
	X(runners)							\
	X(log)								\
	X(log_index)								\
	X(events)							\
	X(audit)							\
	X(users)							\
	X(signin)							\
	X(tokens)							\
	X(devices)							\
	X(git)								\
	X(hooks)							\
	X(service)							\
	X(metrics)							\
	X(openapi)
/* clang-format on */

struct resource {
	const char *tag; /* in the OpenAPI document: "projects" */
	/* Describes the tag; NULL if an earlier resource with the same tag
	 * does. */
	const char *about;
	const struct route *routes; /* ends with ROUTE_END */
};

#define X(name) extern const struct resource name##_resource;
RESOURCES(X)
#undef X

/* All resources; ends with a NULL. */
extern const struct resource *const resources[];

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
