/* SPDX-License-Identifier: ISC */
#include "web/openapi.h"

#include <assert.h>
#include <string.h>

#include "core/str.h"
#include "web/openapi_doc.h"
#include "web/resource.h"
#include "web/scope.h"

#define OPENAPI_MAX ((size_t)2 << 20)

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
		doc_path_parameter(d, rt, name);
		open = close;
	}
}

/* The headers that a client signs and sends with an event. */
static void
header_parameters(struct doc *d)
{
	const struct resource *res = resource_with_headers();
	size_t i;

	for (i = 0; res != NULL && i < res->headers; i++) {
		doc_comma(d);
		buf_putc(d->b, '{');
		doc_text(d, "name", res->header_names[i]);
		doc_put(d, ",'in':'header'");
		doc_text(d, "description", res->header_docs[i]);
		doc_put(d, ",'schema':{'type':'string'}}");
	}
}

static void
parameters_write(struct doc *d, const struct route *rt)
{
	const struct route_param *p;
	const unsigned bits = openapi_sent_of(rt);
	int i;

	if (strchr(rt->path, '{') == NULL && rt->query == NULL && bits == 0)
		return;
	doc_put(d, ",'parameters':[");
	path_parameters(d, rt);
	for (p = rt->query; p != NULL && p->name != NULL; p++)
		doc_parameter(d, p);
	for (i = 0; i < S__MAX; i++)
		if ((bits & BIT(i)) != 0) {
			doc_comma(d);
			doc_reference(d, "parameters", openapi_sent[i].key, "");
		}
	if ((rt->flags & ROUTE_SIGNED) != 0)
		header_parameters(d);
	d->sent |= bits;
	buf_putc(d->b, ']');
}

static void
body_write(struct doc *d, const struct route *rt)
{
	if (rt->in == NULL && (rt->flags & ROUTE_SIGNED) == 0)
		return;
	doc_put(d,
	    (rt->flags & ROUTE_BODILESS) != 0 ?
		",'requestBody':{'required':false," :
		",'requestBody':{'required':true,");
	doc_put(d, "'content':{'application/json':{'schema':");
	if (rt->in == NULL)
		doc_put(d, "{'type':'object'}");
	else
		doc_schema_reference(d, rt->in,
		    rt->mode == JSON_CREATE ? JSON_SCHEMA_CREATE :
					      JSON_SCHEMA_UPDATE,
		    0);
	buf_puts(d->b, "}}}");
}

static void
answer_schema(struct doc *d, const struct route *rt)
{
	if (rt->out == NULL) {
		doc_put(d,
		    rt->type == NULL ||
			    str_starts(rt->type, "application/json") ?
			"{'type':'object'}" :
			"{'type':'string'}");
		return;
	}
	if (rt->list == LIST_NONE)
		doc_schema_reference(d, rt->out, JSON_SCHEMA_OUT, FIELD_DETAIL);
	else
		doc_list_reference(d, rt->out, rt->list);
}

static void
content_write(struct doc *d, const struct route *rt)
{
	if (rt->status == 204)
		return;
	doc_put(d, ",'content':{");
	doc_key(d, rt->type == NULL ? "application/json" : rt->type);
	doc_put(d, "{'schema':");
	answer_schema(d, rt);
	buf_puts(d->b, "}}");
}

static void
success_write(struct doc *d, const struct route *rt)
{
	const unsigned bits = openapi_headers_of(rt);

	buf_printf(d->b, "\"%d\":{", rt->status);
	doc_text(d, "description",
	    rt->status == 201     ? "Created." :
		rt->status == 202 ? "Accepted." :
		rt->status == 204 ? "Done; the response has no body." :
				    "Success.");
	doc_headers(d, bits);
	content_write(d, rt);
	buf_putc(d->b, '}');
	if ((rt->flags & ROUTE_RANGE) != 0) {
		doc_put(d, ",'206':{'description':'The requested range.'");
		doc_headers(d, bits | BIT(H_CONTENT_RANGE));
		content_write(d, rt);
		buf_putc(d->b, '}');
	}
	if (rt->status == 202) {
		doc_put(d,
		    ",'204':{'description':'The request is valid and requires "
		    "no action.'");
		doc_headers(d, BIT(H_REQUEST_ID));
		buf_putc(d->b, '}');
	}
	if (rt->method == METHOD_GET &&
	    (openapi_sent_of(rt) & BIT(S_IF_NONE_MATCH)) != 0) {
		doc_put(d,
		    ",'304':{'description':'The client has the current "
		    "version.'");
		doc_headers(d, BIT(H_REQUEST_ID) | BIT(H_ETAG));
		buf_putc(d->b, '}');
	}
}

static void
failures_write(struct doc *d, const struct route *rt)
{
	const unsigned bits = openapi_errors_of(rt);
	int i;

	for (i = 0; i < ERR__MAX; i++) {
		if ((bits & BIT(i)) == 0)
			continue;
		buf_printf(d->b, ",\"%d\":", err_kinds[i].http);
		doc_reference(d, "responses", err_kinds[i].name, "");
	}
	d->errors |= bits;
}

static void
description_write(struct doc *d, const struct route *rt)
{
	struct buf b;

	buf_init(&b, 4096);
	if (rt->role == ROLE_NONE)
		buf_printf(&b, "No authentication required.%s",
		    rt->doc != NULL ? " " : "");
	else
		buf_printf(&b, "Requires the role %s%s.%s", role_name(rt->role),
		    scope_is_of_project(rt) ?
			", the user's own or as a member of the project" :
			"",
		    rt->doc != NULL ? " " : "");
	if (rt->doc != NULL)
		buf_puts(&b, rt->doc);
	doc_text(d, "description", b.data);
	buf_release(&b);
}

static void
operation_write(struct doc *d, const char *tag, const struct route *rt)
{
	const char *c;

	doc_comma(d);
	buf_putc(d->b, '"');
	for (c = route_methods[rt->method]; *c != '\0'; c++)
		buf_putc(d->b, (char)(*c - 'A' + 'a'));
	buf_puts(d->b, "\":{");
	doc_text(d, "operationId", rt->operation);
	doc_text(d, "summary", rt->summary);
	doc_put(d, ",'tags':[");
	json_string(d->b, tag);
	buf_putc(d->b, ']');
	if (rt->role == ROLE_NONE)
		doc_put(d, ",'security':[]");
	description_write(d, rt);
	parameters_write(d, rt);
	body_write(d, rt);
	doc_put(d, ",'responses':{");
	success_write(d, rt);
	failures_write(d, rt);
	buf_puts(d->b, "}}");
}

/* Whether an earlier route has the same path. */
static bool
path_is_done(const struct route *rt)
{
	const struct resource *const *res;
	const struct route *r = NULL;

	while ((r = doc_next(&res, r)) != rt)
		if (strcmp(r->path, rt->path) == 0)
			return true;
	return false;
}

static void
paths_write(struct doc *d)
{
	const struct resource *const *res, *const *other;
	const struct route *rt = NULL, *r;

	doc_key(d, "paths");
	buf_putc(d->b, '{');
	while ((rt = doc_next(&res, rt)) != NULL) {
		if (path_is_done(rt))
			continue;
		doc_key(d, rt->path);
		buf_putc(d->b, '{');
		r = NULL;
		while ((r = doc_next(&other, r)) != NULL)
			if (strcmp(r->path, rt->path) == 0)
				operation_write(d, (*other)->tag, r);
		buf_putc(d->b, '}');
	}
	buf_putc(d->b, '}');
}

static void
tag_list(struct doc *d)
{
	const struct resource *const *res;

	doc_put(d, ",'tags':[");
	for (res = resources; *res != NULL; res++) {
		if ((*res)->about == NULL)
			continue;
		doc_comma(d);
		buf_putc(d->b, '{');
		doc_text(d, "name", (*res)->tag);
		doc_text(d, "description", (*res)->about);
		buf_putc(d->b, '}');
	}
	buf_putc(d->b, ']');
}

/* Leaves out routes with ROUTE_HIDDEN. */
static void
openapi_write(struct buf *b)
{
	struct doc d = { .b = b };

	doc_put(&d, "{'openapi':'3.1.0','info':");
	doc_put(&d, openapi_info);
	json_string(b, SLIPWAY_VERSION);
	doc_put(&d,
	    "},'servers':[{'url':'/'}],"
	    "'security':[{'bearer':[]},{'cookie':[]}]");
	tag_list(&d);
	paths_write(&d);
	doc_components(&d);
	buf_putc(b, '}');
}

const struct err *
openapi_text(const char **out, size_t *len)
{
	static struct buf text; /* generated once: the tables are constant */
	const struct err *e;

	if (text.len == 0) {
		buf_init(&text, OPENAPI_MAX);
		openapi_write(&text);
	}
	if ((e = buf_check(&text)) != NULL)
		return err_wrap(e, "OpenAPI document");
	*out = text.data;
	*len = text.len;
	return NULL;
}
