/* SPDX-License-Identifier: ISC */
#include "api/openapi.h"

#include <assert.h>
#include <string.h>

#include "api/handlers.h"
#include "api/openapi_parts.h"
#include "core/num.h"
#include "core/str.h"

#define SCHEMAS 128

/* One schema among the components. */
struct schema {
	const struct shape *shape;
	enum json_schema which;
	unsigned detail;
	const char *suffix; /* behind the shape's name */
};

struct doc {
	struct buf *b;
	const struct route *routes;
	struct schema schema[SCHEMAS];
	size_t n_schemas;
	unsigned headers; /* used so far, as bits */
	unsigned sent;
	unsigned errors;
	unsigned lists;
};

static void
put(struct doc *d, const char *text)
{
	const char *quote;

	while ((quote = strchr(text, '\'')) != NULL) {
		buf_add(d->b, text, (size_t)(quote - text));
		buf_putc(d->b, '"');
		text = quote + 1;
	}
	buf_puts(d->b, text);
}

/* A comma, except behind an opening bracket. */
static void
comma(struct doc *d)
{
	if (strchr("{[", d->b->data[d->b->len - 1]) == NULL)
		buf_putc(d->b, ',');
}

static void
key(struct doc *d, const char *name)
{
	comma(d);
	json_string(d->b, name);
	buf_putc(d->b, ':');
}

static void
text(struct doc *d, const char *name, const char *value)
{
	key(d, name);
	json_string(d->b, value);
}

static void
number(struct doc *d, const char *name, int64_t value)
{
	key(d, name);
	buf_printf(d->b, "%lld", (long long)value);
}

static void
reference(struct doc *d, const char *kind, const char *name, const char *suffix)
{
	buf_printf(d->b, "{\"$ref\":\"#/components/%s/%s%s\"}", kind, name,
	    suffix);
}

static bool
has_detail(const struct shape *shape)
{
	const struct field *f;

	for (f = shape->fields; f->name != NULL; f++)
		if ((f->flags & FIELD_OUT) != 0 &&
		    (f->flags & FIELD_DETAIL) != 0)
			return true;
	return false;
}

static const char *
schema_suffix(const struct shape *shape, enum json_schema which,
    unsigned detail)
{
	if (which == JSON_SCHEMA_CREATE)
		return "Input";
	if (which == JSON_SCHEMA_UPDATE)
		return "Update";
	return detail == 0 && has_detail(shape) ? "Summary" : "";
}

/* How a nested shape is described. */
static enum json_schema
schema_inner(const struct field *f, enum json_schema which)
{
	if (which == JSON_SCHEMA_CREATE || which == JSON_SCHEMA_UPDATE)
		return JSON_SCHEMA_CREATE;
	return f->type == F_JSON ? JSON_SCHEMA_STORED : which;
}

/* Adds a schema and those that it refers to, once each; its suffix. */
static const char *
schema_use(struct doc *d, const struct shape *shape, enum json_schema which,
    unsigned detail)
{
	const bool out = which == JSON_SCHEMA_OUT ||
	    which == JSON_SCHEMA_STORED;
	const char *suffix = schema_suffix(shape, which, detail);
	const struct field *f;
	struct schema *s;

	for (s = d->schema; s < d->schema + d->n_schemas; s++)
		if (strcmp(s->shape->name, shape->name) == 0 &&
		    strcmp(s->suffix, suffix) == 0) {
			assert(s->shape == shape);
			if (which == JSON_SCHEMA_STORED)
				s->which = which;
			return suffix;
		}
	assert(d->n_schemas < SCHEMAS);
	d->schema[d->n_schemas++] = (struct schema){ shape, which, detail,
		suffix };
	for (f = shape->fields; f->name != NULL; f++)
		if (f->shape != NULL &&
		    (f->flags & (out ? FIELD_OUT : FIELD_IN)) != 0)
			(void)schema_use(d, f->shape, schema_inner(f, which),
			    FIELD_DETAIL);
	return suffix;
}

static void
schema_reference(struct doc *d, const struct shape *shape,
    enum json_schema which, unsigned detail)
{
	reference(d, "schemas", shape->name,
	    schema_use(d, shape, which, detail));
}

static void
path_parameters(struct doc *d, const struct route *rt)
{
	const char *open = rt->path, *close;
	char name[32];

	while ((open = strchr(open, '{')) != NULL) {
		close = strchr(open, '}');
		assert((size_t)(close - open) <= sizeof(name));
		(void)memcpy(name, open + 1, (size_t)(close - open - 1));
		name[close - open - 1] = '\0';
		comma(d);
		buf_putc(d->b, '{');
		text(d, "name", name);
		put(d, ",'in':'path','required':true,'schema':");
		if ((rt->flags & ROUTE_SLUG) != 0)
			put(d, "{'type':'string','minLength':1}}");
		else
			buf_printf(d->b,
			    "{\"type\":\"integer\",\"minimum\":1,"
			    "\"maximum\":%lld}}",
			    (long long)NUM_SAFE);
		open = close;
	}
}

static void
parameter_schema(struct doc *d, const struct route_param *p)
{
	const char *const *v;

	buf_putc(d->b, '{');
	if (p->type == PARAM_INT) {
		text(d, "type", "integer");
		number(d, "minimum", p->min);
		number(d, "maximum", p->max);
		if (p->must == 0 && p->fallback >= p->min &&
		    p->fallback <= p->max)
			number(d, "default", p->fallback);
	} else {
		text(d, "type", "string");
		if (p->values != NULL) {
			put(d, ",'enum':[");
			for (v = p->values; *v != NULL; v++) {
				comma(d);
				json_string(d->b, *v);
			}
			buf_putc(d->b, ']');
		}
		if (p->min > 0)
			number(d, "minLength", p->min);
		if (p->max > 0)
			number(d, "maxLength", p->max);
	}
	buf_putc(d->b, '}');
}

static void
parameters(struct doc *d, const struct route *rt)
{
	const struct route_param *p;
	const unsigned bits = openapi_sent_of(rt);
	int i;

	if (strchr(rt->path, '{') == NULL && rt->query == NULL && bits == 0)
		return;
	put(d, ",'parameters':[");
	path_parameters(d, rt);
	for (p = rt->query; p != NULL && p->name != NULL; p++) {
		comma(d);
		buf_putc(d->b, '{');
		text(d, "name", p->name);
		put(d, ",'in':'query'");
		if (p->must != 0)
			put(d, ",'required':true");
		else if (p->type == PARAM_STR)
			put(d, ",'allowEmptyValue':true");
		if (p->doc != NULL)
			text(d, "description", p->doc);
		key(d, "schema");
		parameter_schema(d, p);
		buf_putc(d->b, '}');
	}
	for (i = 0; i < S__MAX; i++)
		if ((bits & BIT(i)) != 0) {
			comma(d);
			reference(d, "parameters", openapi_sent[i].key, "");
		}
	d->sent |= bits;
	buf_putc(d->b, ']');
}

static void
body(struct doc *d, const struct route *rt)
{
	if (rt->in == NULL && (rt->flags & ROUTE_SIGNED) == 0)
		return;
	put(d, ",'requestBody':{'required':true,");
	put(d, "'content':{'application/json':{'schema':");
	if (rt->in == NULL)
		put(d, "{'type':'object'}");
	else
		schema_reference(d, rt->in,
		    rt->mode == JSON_CREATE ? JSON_SCHEMA_CREATE :
					      JSON_SCHEMA_UPDATE,
		    0);
	buf_puts(d->b, "}}}");
}

static void
header_references(struct doc *d, unsigned bits)
{
	int i;

	put(d, ",'headers':{");
	for (i = 0; i < H__MAX; i++)
		if ((bits & BIT(i)) != 0) {
			key(d, openapi_headers[i].name);
			reference(d, "headers", openapi_headers[i].key, "");
		}
	d->headers |= bits;
	buf_putc(d->b, '}');
}

static void
answer_schema(struct doc *d, const struct route *rt)
{
	if (rt->out == NULL) {
		put(d,
		    rt->type == NULL ||
			    str_starts(rt->type, "application/json") ?
			"{'type':'object'}" :
			"{'type':'string'}");
		return;
	}
	if (rt->list == LIST_NONE) {
		schema_reference(d, rt->out, JSON_SCHEMA_OUT, FIELD_DETAIL);
		return;
	}
	if (rt->list != LIST_BARE)
		put(d, "{'type':'object','properties':{'data':");
	put(d, "{'type':'array','items':");
	schema_reference(d, rt->out, JSON_SCHEMA_OUT, 0);
	buf_putc(d->b, '}');
	if (rt->list == LIST_BARE)
		return;
	if (rt->list == LIST_DATA) {
		put(d, "},'required':['data'],'additionalProperties':false}");
		return;
	}
	put(d, ",'pagination':");
	reference(d, "schemas", openapi_paginations[rt->list].key, "");
	put(d,
	    "},'required':['data','pagination'],"
	    "'additionalProperties':false}");
	d->lists |= BIT(rt->list);
}

static void
content(struct doc *d, const struct route *rt)
{
	if (rt->status == 204)
		return;
	put(d, ",'content':{");
	key(d, rt->type == NULL ? "application/json" : rt->type);
	put(d, "{'schema':");
	answer_schema(d, rt);
	buf_puts(d->b, "}}");
}

static void
success(struct doc *d, const struct route *rt)
{
	const unsigned bits = openapi_headers_of(rt);

	buf_printf(d->b, "\"%d\":{", rt->status);
	text(d, "description",
	    rt->status == 201     ? "Created." :
		rt->status == 202 ? "Accepted." :
		rt->status == 204 ? "Done; there is nothing to say." :
				    "The answer.");
	header_references(d, bits);
	content(d, rt);
	buf_putc(d->b, '}');
	if ((rt->flags & ROUTE_RANGE) != 0) {
		put(d, ",'206':{'description':'The part asked for.'");
		header_references(d, bits | BIT(H_CONTENT_RANGE));
		content(d, rt);
		buf_putc(d->b, '}');
	}
	if (rt->status == 202) {
		put(d, ",'204':{'description':'There was nothing to do.'");
		header_references(d, BIT(H_REQUEST_ID));
		buf_putc(d->b, '}');
	}
	if (rt->method == METHOD_GET &&
	    (openapi_sent_of(rt) & BIT(S_IF_NONE_MATCH)) != 0) {
		put(d, ",'304':{'description':'The client has it already.'");
		header_references(d, BIT(H_REQUEST_ID) | BIT(H_ETAG));
		buf_putc(d->b, '}');
	}
}

static void
failures(struct doc *d, const struct route *rt)
{
	const unsigned bits = openapi_errors_of(rt);
	int i;

	for (i = 0; i < ERR__MAX; i++) {
		if ((bits & BIT(i)) == 0)
			continue;
		buf_printf(d->b, ",\"%d\":", err_kinds[i].http);
		reference(d, "responses", err_kinds[i].name, "");
	}
	d->errors |= bits;
}

static void
description(struct doc *d, const struct route *rt)
{
	struct buf b;

	buf_init(&b, 4096);
	if (rt->role != ROLE_NONE)
		buf_printf(&b, "Needs the role %s.%s",
		    role_names[rt->role - ROLE_VIEWER],
		    rt->doc != NULL ? " " : "");
	if (rt->doc != NULL)
		buf_puts(&b, rt->doc);
	if (b.len > 0)
		text(d, "description", b.data);
	buf_release(&b);
}

static void
operation(struct doc *d, const struct route *rt)
{
	const char *c;

	comma(d);
	buf_putc(d->b, '"');
	for (c = route_methods[rt->method]; *c != '\0'; c++)
		buf_putc(d->b, (char)(*c - 'A' + 'a'));
	buf_puts(d->b, "\":{");
	text(d, "operationId", rt->operation);
	text(d, "summary", rt->summary);
	put(d, ",'tags':[");
	json_string(d->b, rt->tag);
	buf_putc(d->b, ']');
	if (rt->role == ROLE_NONE)
		put(d, ",'security':[]");
	description(d, rt);
	parameters(d, rt);
	body(d, rt);
	put(d, ",'responses':{");
	success(d, rt);
	failures(d, rt);
	buf_puts(d->b, "}}");
}

static bool
is_shown(const struct route *rt)
{
	return (rt->flags & ROUTE_HIDDEN) == 0;
}

/* Whether an earlier route of the table has the same path. */
static bool
path_is_done(const struct doc *d, const struct route *rt)
{
	const struct route *r;

	for (r = d->routes; r < rt; r++)
		if (is_shown(r) && strcmp(r->path, rt->path) == 0)
			return true;
	return false;
}

static void
paths(struct doc *d)
{
	const struct route *rt, *r;

	key(d, "paths");
	buf_putc(d->b, '{');
	for (rt = d->routes; rt->path != NULL; rt++) {
		if (!is_shown(rt) || path_is_done(d, rt))
			continue;
		key(d, rt->path);
		buf_putc(d->b, '{');
		for (r = rt; r->path != NULL; r++)
			if (is_shown(r) && strcmp(r->path, rt->path) == 0)
				operation(d, r);
		buf_putc(d->b, '}');
	}
	buf_putc(d->b, '}');
}

static void
tag_list(struct doc *d)
{
	const struct tag *tag;
	const struct route *rt;

	put(d, ",'tags':[");
	for (tag = openapi_tags; tag->name != NULL; tag++) {
		for (rt = d->routes; rt->path != NULL; rt++)
			if (is_shown(rt) && strcmp(rt->tag, tag->name) == 0)
				break;
		if (rt->path == NULL)
			continue;
		comma(d);
		buf_putc(d->b, '{');
		text(d, "name", tag->name);
		text(d, "description", tag->text);
		buf_putc(d->b, '}');
	}
	buf_putc(d->b, ']');
}

/* Some errors are the same to the outside. */
static bool
is_named_before(int code)
{
	int k;

	for (k = 0; k < code; k++)
		if (strcmp(err_kinds[k].name, err_kinds[code].name) == 0)
			return true;
	return false;
}

static void
schemas(struct doc *d)
{
	size_t i;
	int k;

	put(d, "'schemas':{'Problem':");
	put(d, openapi_problem);
	for (k = 0; k < ERR__MAX; k++)
		if (!is_named_before(k)) {
			comma(d);
			json_string(d->b, err_kinds[k].name);
		}
	put(d, openapi_problem_end);
	for (k = LIST_PAGES; k <= LIST_MORE; k++)
		if ((d->lists & BIT(k)) != 0) {
			key(d, openapi_paginations[k].key);
			put(d, openapi_paginations[k].text);
		}
	for (i = 0; i < d->n_schemas; i++) {
		const struct schema *s = &d->schema[i];

		buf_printf(d->b, ",\"%s%s\":", s->shape->name, s->suffix);
		json_schema(d->b, s->shape, s->which, s->detail);
	}
	buf_putc(d->b, '}');
}

static void
responses(struct doc *d)
{
	int i;

	put(d, ",'responses':{");
	for (i = 0; i < ERR__MAX; i++) {
		unsigned bits = BIT(H_REQUEST_ID);

		if ((d->errors & BIT(i)) == 0)
			continue;
		if (i == ERR_UNAVAILABLE || i == ERR_RATE)
			bits |= BIT(H_RETRY_AFTER);
		if (i == ERR_RANGE)
			bits |= BIT(H_CONTENT_RANGE) | BIT(H_LOG_SIZE) |
			    BIT(H_LOG_COMPLETE);
		if (i == ERR_UNAUTHENTICATED)
			bits |= BIT(H_AUTHENTICATE);
		key(d, err_kinds[i].name);
		buf_putc(d->b, '{');
		text(d, "description", err_kinds[i].text);
		header_references(d, bits);
		put(d, ",'content':{'application/problem+json':{'schema':");
		reference(d, "schemas", "Problem", "");
		buf_puts(d->b, "}}}");
	}
	buf_putc(d->b, '}');
}

static void
components(struct doc *d)
{
	int i;

	put(d, ",'components':{");
	schemas(d);
	responses(d);
	put(d, ",'parameters':{");
	for (i = 0; i < S__MAX; i++)
		if ((d->sent & BIT(i)) != 0) {
			key(d, openapi_sent[i].key);
			put(d, openapi_sent[i].text);
		}
	put(d, "},'headers':{");
	for (i = 0; i < H__MAX; i++)
		if ((d->headers & BIT(i)) != 0) {
			key(d, openapi_headers[i].key);
			put(d, openapi_headers[i].text);
		}
	buf_puts(d->b, "},");
	put(d, openapi_security);
	buf_putc(d->b, '}');
}

void
openapi_write(struct buf *b, const struct route *table)
{
	struct doc d = { .b = b, .routes = table };

	put(&d, "{'openapi':'3.1.0','info':");
	put(&d, openapi_info);
	json_string(b, SLIPWAY_VERSION);
	put(&d,
	    "},'servers':[{'url':'/'}],"
	    "'security':[{'bearer':[]},{'cookie':[]}]");
	tag_list(&d);
	paths(&d);
	components(&d);
	buf_putc(b, '}');
}

const struct err *
api_openapi_show(struct req *rq)
{
	static struct buf text; /* made once: the tables do not change */
	const struct err *e;

	if (text.len == 0) {
		buf_init(&text, OPENAPI_MAX);
		openapi_write(&text, routes);
	}
	if ((e = buf_check(&text)) != NULL)
		return err_wrap(e, "OpenAPI document");
	answer_json(rq, text.data, text.len, 0);
	return NULL;
}
