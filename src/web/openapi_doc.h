/* SPDX-License-Identifier: ISC */
/* Shared by the files that generate the OpenAPI document: the output buffer,
 * and the components that the text refers to, each recorded once. */
#ifndef SLIPWAY_WEB_OPENAPI_DOC_H
#define SLIPWAY_WEB_OPENAPI_DOC_H

#include "web/openapi_parts.h"
#include "web/resource.h"

#define DOC_SCHEMAS 192

/* A schema of a shape, or of a list of that shape. */
struct doc_schema {
	const struct shape *shape;
	enum json_schema which;
	unsigned detail;
	const char *suffix;   /* appended to the shape's name */
	enum route_list list; /* LIST_NONE = the shape itself */
};

/* A schema that fields or parameters refer to by name. */
struct doc_named {
	const char *name;
	const char *const *values; /* NULL = a map of strings */
};

/* Path parameters named "id". */
enum doc_id { DOC_ID = 1 << 0, DOC_SLUG = 1 << 1 };

struct doc {
	struct buf *b;
	struct doc_schema schema[DOC_SCHEMAS];
	size_t n_schemas;
	struct doc_named named[DOC_SCHEMAS];
	size_t n_named;
	unsigned headers; /* used until now, as bits */
	unsigned sent;
	unsigned errors;
	unsigned lists;
	unsigned ids; /* enum doc_id */
};

/* Writes text in which ' is written for a double quote. */
void doc_put(struct doc *, const char *text);
/* Writes a comma, except after an opening bracket. */
void doc_comma(struct doc *);
void doc_key(struct doc *, const char *name);
void doc_text(struct doc *, const char *name, const char *value);
void doc_reference(struct doc *, const char *kind, const char *name,
    const char *suffix);
/* Writes "headers": references, given as bits of enum header. */
void doc_headers(struct doc *, unsigned bits);
/* Iterates over the routes in the document: returns the one after `rt` (NULL =
 * the first), or NULL at the end. `res` tracks its resource. */
const struct route *doc_next(const struct resource *const **res,
    const struct route *rt);

/* References; doc_components() writes their targets. */
void doc_schema_reference(struct doc *, const struct shape *, enum json_schema,
    unsigned detail);
void doc_list_reference(struct doc *, const struct shape *, enum route_list);
/* A query parameter. One that several routes share becomes a component. */
void doc_parameter(struct doc *, const struct route_param *);
void doc_path_parameter(struct doc *, const struct route *, const char *name);

/* Writes all components. Call it after all routes are written. */
void doc_components(struct doc *);

#endif
