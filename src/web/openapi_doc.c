/* SPDX-License-Identifier: ISC */
#include "web/openapi_doc.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "core/num.h"
#include "store/env.h"

void
doc_put(struct doc *d, const char *text)
{
	const char *quote;

	while ((quote = strchr(text, '\'')) != NULL) {
		buf_add(d->b, text, (size_t)(quote - text));
		buf_putc(d->b, '"');
		text = quote + 1;
	}
	buf_puts(d->b, text);
}

void
doc_comma(struct doc *d)
{
	if (strchr("{[", d->b->data[d->b->len - 1]) == NULL)
		buf_putc(d->b, ',');
}

void
doc_key(struct doc *d, const char *name)
{
	doc_comma(d);
	json_string(d->b, name);
	buf_putc(d->b, ':');
}

void
doc_text(struct doc *d, const char *name, const char *value)
{
	doc_key(d, name);
	json_string(d->b, value);
}

static void
doc_number(struct doc *d, const char *name, int64_t value)
{
	doc_key(d, name);
	buf_printf(d->b, "%lld", (long long)value);
}

void
doc_reference(struct doc *d, const char *kind, const char *name,
    const char *suffix)
{
	buf_printf(d->b, "{\"$ref\":\"#/components/%s/%s%s\"}", kind, name,
	    suffix);
}

static bool
doc_shows(const struct route *rt)
{
	return (rt->flags & ROUTE_HIDDEN) == 0;
}

const struct route *
doc_next(const struct resource *const **res, const struct route *rt)
{
	if (rt == NULL) {
		*res = resources;
		rt = (**res)->routes;
	} else
		rt++;
	while (rt->path == NULL || !doc_shows(rt))
		if (rt->path != NULL)
			rt++;
		else if (*++*res != NULL)
			rt = (**res)->routes;
		else
			return NULL;
	return rt;
}

void
doc_headers(struct doc *d, unsigned bits)
{
	int i;

	doc_put(d, ",'headers':{");
	for (i = 0; i < H__MAX; i++)
		if ((bits & BIT(i)) != 0) {
			doc_key(d, openapi_headers[i].name);
			doc_reference(d, "headers", openapi_headers[i].key, "");
		}
	d->headers |= bits;
	buf_putc(d->b, '}');
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

/* The schema that describes a nested shape. */
static enum json_schema
schema_inner(const struct field *f, enum json_schema which)
{
	if (json_schema_fixed(f, which))
		return JSON_SCHEMA_OUT;
	if (which == JSON_SCHEMA_CREATE || which == JSON_SCHEMA_UPDATE)
		return JSON_SCHEMA_CREATE;
	return f->type == F_JSON ? JSON_SCHEMA_STORED : which;
}

static bool
is_written(const struct field *f, enum json_schema which)
{
	if (which == JSON_SCHEMA_CREATE)
		return (f->flags & FIELD_IN) != 0;
	if (which == JSON_SCHEMA_UPDATE)
		return (f->flags & (FIELD_IN | FIELD_OUT)) != 0;
	return (f->flags & FIELD_OUT) != 0;
}

static void
named_use(struct doc *d, const char *name, const char *const *values)
{
	size_t i;

	for (i = 0; i < d->n_named; i++)
		if (strcmp(d->named[i].name, name) == 0)
			return;
	assert(d->n_named < DOC_SCHEMAS);
	d->named[d->n_named++] = (struct doc_named){ name, values };
}

/* Returns the schema if it was added before, else NULL. */
static struct doc_schema *
schema_find(struct doc *d, const struct shape *shape, const char *suffix)
{
	struct doc_schema *s;

	for (s = d->schema; s < d->schema + d->n_schemas; s++)
		if (strcmp(s->shape->name, shape->name) == 0 &&
		    strcmp(s->suffix, suffix) == 0)
			return s;
	return NULL;
}

static void
schema_add(struct doc *d, const struct doc_schema *s)
{
	assert(d->n_schemas < DOC_SCHEMAS);
	d->schema[d->n_schemas++] = *s;
}

/* Adds a schema and every schema that it refers to, once each. Returns its
 * suffix. */
static const char *
schema_use(struct doc *d, const struct shape *shape, enum json_schema which,
    unsigned detail)
{
	const char *suffix = schema_suffix(shape, which, detail);
	struct doc_schema *s = schema_find(d, shape, suffix);
	const struct field *f, *value;

	if (s != NULL) {
		assert(s->shape == shape);
		if (which == JSON_SCHEMA_STORED)
			s->which = which;
		return suffix;
	}
	schema_add(d,
	    &(struct doc_schema){ shape, which, detail, suffix, LIST_NONE });
	for (f = shape->fields; f->name != NULL; f++) {
		if (!is_written(f, which))
			continue;
		value = f->shape != NULL && f->shape->bare ? f->shape->fields :
							     f;
		if (value->named != NULL)
			named_use(d, value->named, value->values);
		if (f->shape != NULL && !f->shape->bare)
			(void)schema_use(d, f->shape, schema_inner(f, which),
			    FIELD_DETAIL);
	}
	return suffix;
}

void
doc_schema_reference(struct doc *d, const struct shape *shape,
    enum json_schema which, unsigned detail)
{
	doc_reference(d, "schemas", shape->name,
	    schema_use(d, shape, which, detail));
}

void
doc_list_reference(struct doc *d, const struct shape *shape,
    enum route_list list)
{
	const struct doc_schema *s = schema_find(d, shape, "List");

	assert(s == NULL || s->list == list);
	if (s == NULL) {
		schema_add(d,
		    &(struct doc_schema){ shape, JSON_SCHEMA_OUT, 0, "List",
			list });
		(void)schema_use(d, shape, JSON_SCHEMA_OUT, 0);
	}
	if (openapi_paginations[list].key != NULL)
		d->lists |= BIT(list);
	doc_reference(d, "schemas", shape->name, "List");
}

static void
doc_named_reference(struct doc *d, const char *name, const char *const *values)
{
	named_use(d, name, values);
	doc_reference(d, "schemas", name, "");
}

static void
parameter_schema(struct doc *d, const struct route_param *p)
{
	if (p->named != NULL) {
		doc_named_reference(d, p->named, p->values);
		return;
	}
	buf_putc(d->b, '{');
	if (p->type == PARAM_INT && p->opaque == 0) {
		doc_text(d, "type", "integer");
		json_schema_format(d->b, p->max);
		doc_number(d, "minimum", p->min);
		doc_number(d, "maximum", p->max);
		if (p->must == 0 && p->absent == 0 && p->fallback >= p->min &&
		    p->fallback <= p->max)
			doc_number(d, "default", p->fallback);
	} else if (p->type == PARAM_INT) {
		doc_put(d, "'type':'string','pattern':'^[1-9][0-9]{0,15}$'");
	} else {
		doc_text(d, "type", "string");
		if (p->values != NULL)
			json_schema_values(d->b, p->values);
		if (p->min > 0)
			doc_number(d, "minLength", p->min);
		if (p->max > 0)
			doc_number(d, "maxLength", p->max);
	}
	buf_putc(d->b, '}');
}

static void
parameter_write(struct doc *d, const struct route_param *p)
{
	buf_putc(d->b, '{');
	doc_text(d, "name", p->name);
	doc_put(d, ",'in':'query'");
	if (p->must != 0)
		doc_put(d, ",'required':true");
	else if (p->type == PARAM_STR)
		doc_put(d, ",'allowEmptyValue':true");
	if (p->doc != NULL)
		doc_text(d, "description", p->doc);
	doc_key(d, "schema");
	parameter_schema(d, p);
	buf_putc(d->b, '}');
}

static bool
same_text(const char *one, const char *other)
{
	return one == other ||
	    (one != NULL && other != NULL && strcmp(one, other) == 0);
}

static bool
same_parameter(const struct route_param *p, const struct route_param *q)
{
	return strcmp(p->name, q->name) == 0 && p->type == q->type &&
	    p->must == q->must && p->min == q->min && p->max == q->max &&
	    p->fallback == q->fallback && p->values == q->values &&
	    p->opaque == q->opaque && p->absent == q->absent &&
	    same_text(p->doc, q->doc);
}

/* How many routes have this very parameter. */
static int
uses_of(const struct route_param *p)
{
	const struct route_param *q;
	const struct resource *const *res;
	const struct route *rt = NULL;
	int uses = 0;

	while ((rt = doc_next(&res, rt)) != NULL)
		for (q = rt->query; q != NULL && q->name != NULL; q++)
			uses += same_parameter(p, q);
	return uses;
}

/* Whether it is the first parameter of its name that several routes have.
 * Others of the name are written where they are used. */
static bool
is_shared(const struct route_param *p)
{
	const struct route_param *q;
	const struct resource *const *res;
	const struct route *rt = NULL;

	while ((rt = doc_next(&res, rt)) != NULL)
		for (q = rt->query; q != NULL && q->name != NULL; q++)
			if (strcmp(p->name, q->name) == 0 && uses_of(q) > 1)
				return same_parameter(p, q);
	return false;
}

void
doc_parameter(struct doc *d, const struct route_param *p)
{
	char name[32];

	doc_comma(d);
	if (!is_shared(p)) {
		parameter_write(d, p);
		return;
	}
	(void)snprintf(name, sizeof(name), "%c%s",
	    toupper((unsigned char)p->name[0]), p->name + 1);
	doc_reference(d, "parameters", name, "");
}

static void
path_parameter_write(struct doc *d, const char *name, enum doc_id kind)
{
	buf_putc(d->b, '{');
	doc_text(d, "name", name);
	doc_put(d, ",'in':'path','required':true,'description':");
	if (kind == DOC_SLUG) {
		doc_put(d,
		    "'Id of the resource, a name.','schema':{'type':"
		    "'string','minLength':1,'maxLength':64,"
		    "'pattern':'^[a-z0-9][a-z0-9._-]*$'}}");
		return;
	}
	doc_put(d,
	    "'Id of the resource, a number.','schema':"
	    "{'type':'integer','format':'int64','minimum':1");
	doc_number(d, "maximum", NUM_SAFE);
	buf_puts(d->b, "}}");
}

/* Whether a route before `end` has that very parameter. */
static bool
is_before(const struct route_param *p, const struct route *end)
{
	const struct resource *const *res;
	const struct route_param *q;
	const struct route *rt = NULL;

	while ((rt = doc_next(&res, rt)) != end)
		for (q = rt->query; q != NULL && q->name != NULL; q++)
			if (same_parameter(p, q))
				return true;
	return false;
}

/* Writes the shared parameters as components, in the order of their first
 * use. */
static void
parameters_write(struct doc *d)
{
	const struct resource *const *res;
	const struct route_param *p;
	const struct route *rt = NULL;

	while ((rt = doc_next(&res, rt)) != NULL)
		for (p = rt->query; p != NULL && p->name != NULL; p++) {
			if (!is_shared(p) || is_before(p, rt))
				continue;
			doc_comma(d);
			buf_printf(d->b,
			    "\"%c%s\":", toupper((unsigned char)p->name[0]),
			    p->name + 1);
			parameter_write(d, p);
		}
}

void
doc_path_parameter(struct doc *d, const struct route *rt, const char *name)
{
	const bool slug = (rt->flags & ROUTE_SLUG) != 0;

	doc_comma(d);
	if (strcmp(name, "id") == 0) {
		d->ids |= slug ? DOC_SLUG : DOC_ID;
		doc_reference(d, "parameters", slug ? "Slug" : "Id", "");
		return;
	}
	path_parameter_write(d, name, slug ? DOC_SLUG : DOC_ID);
}

/* Several internal errors can have one public name. */
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
list_schema(struct doc *d, const struct doc_schema *s)
{
	const char *about = s->list == LIST_BARE ? "The complete list." :
	    s->list == LIST_DATA                 ? "The result." :
						   "A page of a list.";

	buf_putc(d->b, '{');
	doc_text(d, "description", about);
	if (s->list != LIST_BARE)
		doc_put(d, ",'type':'object','properties':{'data':{");
	doc_put(d,
	    s->list == LIST_BARE ? ",'type':'array','items':" :
				   "'type':'array','items':");
	doc_schema_reference(d, s->shape, JSON_SCHEMA_OUT, 0);
	if (s->list == LIST_BARE) {
		buf_putc(d->b, '}');
		return;
	}
	doc_put(d, ",'description':'The items of the page.'}");
	if (s->list != LIST_DATA) {
		doc_put(d, ",'pagination':");
		doc_reference(d, "schemas", openapi_paginations[s->list].key,
		    "");
	}
	doc_put(d,
	    s->list == LIST_DATA ? "},'required':['data']" :
				   "},'required':['data','pagination']");
	doc_put(d, ",'additionalProperties':false}");
}

static void
named_schema(struct doc *d, const struct doc_named *named)
{
	buf_putc(d->b, '{');
	doc_text(d, "description", openapi_about(named->name));
	if (named->values != NULL) {
		doc_put(d, ",'type':'string'");
		json_schema_values(d->b, named->values);
	} else {
		doc_put(d,
		    ",'type':'object','propertyNames':{'type':'string','pattern':");
		json_string(d->b, "^(?:" ENV_NAME_ERE ")$");
		doc_put(d,
		    "},'additionalProperties':{'type':['string','null']");
		doc_number(d, "maxLength", (int64_t)ENV_VALUE_MAX);
		buf_putc(d->b, '}');
	}
	buf_putc(d->b, '}');
}

/* The schemas of errors. */
static void
problem_schemas(struct doc *d)
{
	int k;

	doc_key(d, "ErrorCode");
	doc_put(d, openapi_codes);
	for (k = 0; k < ERR__MAX; k++)
		if (!is_named_before(k)) {
			doc_comma(d);
			json_string(d->b, err_kinds[k].name);
		}
	buf_puts(d->b, "]}");
	doc_key(d, "DeviceError");
	doc_put(d, openapi_device_error);
	doc_key(d, "Fault");
	doc_put(d, openapi_fault);
	doc_key(d, "Problem");
	doc_put(d, openapi_problem);
}

static void
schemas_write(struct doc *d)
{
	const struct doc_schema *s;
	size_t i;
	int k;

	doc_put(d, "'schemas':{");
	problem_schemas(d);
	for (k = LIST_PAGES; k <= LIST_MORE; k++)
		if ((d->lists & BIT(k)) != 0) {
			doc_key(d, openapi_paginations[k].key);
			doc_put(d, openapi_paginations[k].text);
		}
	for (i = 0; i < d->n_named; i++) {
		doc_key(d, d->named[i].name);
		named_schema(d, &d->named[i]);
	}
	for (s = d->schema; s < d->schema + d->n_schemas; s++) {
		buf_printf(d->b, ",\"%s%s\":", s->shape->name, s->suffix);
		if (s->list != LIST_NONE)
			list_schema(d, s);
		else
			json_schema(d->b, s->shape, s->which, s->detail);
	}
	buf_putc(d->b, '}');
}

static void
responses_write(struct doc *d)
{
	int i;

	doc_put(d, ",'responses':{");
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
		doc_key(d, err_kinds[i].name);
		buf_putc(d->b, '{');
		doc_text(d, "description", err_kinds[i].text);
		doc_headers(d, bits);
		doc_put(d, ",'content':{'application/problem+json':{'schema':");
		doc_reference(d, "schemas", "Problem", "");
		buf_puts(d->b, "}}}");
	}
	buf_putc(d->b, '}');
}

void
doc_components(struct doc *d)
{
	int i;

	doc_put(d, ",'components':{'parameters':{");
	if ((d->ids & DOC_ID) != 0) {
		doc_key(d, "Id");
		path_parameter_write(d, "id", DOC_ID);
	}
	if ((d->ids & DOC_SLUG) != 0) {
		doc_key(d, "Slug");
		path_parameter_write(d, "id", DOC_SLUG);
	}
	parameters_write(d);
	for (i = 0; i < S__MAX; i++)
		if ((d->sent & BIT(i)) != 0) {
			doc_key(d, openapi_sent[i].key);
			doc_put(d, openapi_sent[i].text);
		}
	doc_put(d, "},");
	schemas_write(d);
	responses_write(d);
	doc_put(d, ",'headers':{");
	for (i = 0; i < H__MAX; i++)
		if ((d->headers & BIT(i)) != 0) {
			doc_key(d, openapi_headers[i].key);
			doc_put(d, openapi_headers[i].text);
		}
	doc_put(d, "},");
	doc_put(d, openapi_security);
	buf_putc(d->b, '}');
}
