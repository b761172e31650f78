/* SPDX-License-Identifier: ISC */
/* What the files of the OpenAPI document share: the text as it is written, and
 * the components that it refers to, each of them once. */
#ifndef SLIPWAY_API_OPENAPI_DOC_H
#define SLIPWAY_API_OPENAPI_DOC_H

#include "api/openapi_parts.h"
#include "api/resources.h"

#define DOC_SCHEMAS 192

/* A schema of a shape, or of a list of it. */
struct doc_schema {
	const struct shape *shape;
	enum json_schema which;
	unsigned detail;
	const char *suffix;   /* behind the shape's name */
	enum route_list list; /* LIST_NONE = of the shape itself */
};

/* One of the schemas that fields and parameters name. */
struct doc_named {
	const char *name;
	const char *const *values; /* NULL = a map of strings */
};

/* The parameters named "id" in paths. */
enum doc_id { DOC_ID = 1 << 0, DOC_SLUG = 1 << 1 };

struct doc {
	struct buf *b;
	struct doc_schema schema[DOC_SCHEMAS];
	size_t n_schemas;
	struct doc_named named[DOC_SCHEMAS];
	size_t n_named;
	unsigned headers; /* used so far, as bits */
	unsigned sent;
	unsigned errors;
	unsigned lists;
	unsigned ids; /* enum doc_id */
};

/* Text in which ' stands for a quotation mark. */
void doc_put(struct doc *, const char *text);
/* A comma, except behind an opening bracket. */
void doc_comma(struct doc *);
void doc_key(struct doc *, const char *name);
void doc_text(struct doc *, const char *name, const char *value);
void doc_number(struct doc *, const char *name, int64_t value);
void doc_reference(struct doc *, const char *kind, const char *name,
    const char *suffix);
/* "headers": references to these, as bits of enum header. */
void doc_headers(struct doc *, unsigned bits);
/* Whether a route is in the document. */
bool doc_shows(const struct route *);
/* Goes through the routes in the document: the one after `rt`, the first for
 * NULL; NULL behind the last.  `res` keeps its resource. */
const struct route *doc_next(const struct resource *const **res,
    const struct route *rt);

/* References; what they refer to is written by doc_components(). */
void doc_schema_reference(struct doc *, const struct shape *, enum json_schema,
    unsigned detail);
void doc_list_reference(struct doc *, const struct shape *, enum route_list);
void doc_named_reference(struct doc *, const char *name,
    const char *const *values);
/* A query parameter: those that several routes have alike are components. */
void doc_parameter(struct doc *, const struct route_param *);
void doc_path_parameter(struct doc *, const struct route *, const char *name);

/* All components; to be called when all routes were written. */
void doc_components(struct doc *);

#endif
