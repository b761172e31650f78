/* SPDX-License-Identifier: ISC */
#include "api/part.h"

#include <string.h>

#include "api/resources.h"
#include "core/num.h"
#include "core/str.h"
#include "store/named.h"
#include "web/answer.h"
#include "web/route.h"

#define MATCHED_MAX ((size_t)200000000) /* about a second */

const char *
part_pointer(const struct import *im, const char *list, size_t index)
{
	return arena_printf(im->a, "/document/%s/%zu", list, index);
}

struct part
part_begin(struct import *im, const char *type, const char *name,
    const char *at)
{
	struct import_item *item = (struct import_item *)
				       im->result.items.items +
	    im->result.items.n++;

	*item = (struct import_item){ .type = type,
		.name = name,
		.action = PART_UNCHANGED,
		.changes.s = "[]" };
	return (struct part){ .im = im, .at = at, .item = item };
}

void
part_missing(struct import *im, const char *at)
{
	struct import_missing *to = im->result.missing.items;

	if (im->result.missing.n < PART_MISSING)
		to[im->result.missing.n++].pointer = at;
}

void
part_changed(const struct part *p, const char *changes)
{
	struct import_item *item = p->item;
	const char *had = item->changes.s;

	if (changes == NULL || str_eq(changes, "[]"))
		return;
	item->changes.s = str_eq(had, "[]") ?
	    arena_strdup(p->im->a, changes) :
	    arena_printf(p->im->a, "%.*s,%s", (int)strlen(had) - 1, had,
		changes + 1);
	if (str_eq(item->action, PART_UNCHANGED))
		item->action = PART_CHANGED;
}

/* The document has names in place of ids. */
static const char *
pointer_named(struct arena *a, const char *at)
{
	const bool id = str_ends(at, "/pipelineId") ||
	    str_ends(at, "/environmentId");

	return id ? arena_strndup(a, at, strlen(at) - strlen("Id")) : at;
}

/* Reports the faults of a part with pointers into the document. */
static void
faults_bring(const struct part *p, const struct faults *from)
{
	struct faults *to = &p->im->rq->faults;
	const char *at;
	size_t i;

	for (i = 0; i < from->n && i < FAULTS_MAX; i++) {
		at = arena_printf(to->a, "%s%s", p->at,
		    pointer_named(to->a, from->item[i].pointer));
		if (from->conflicts == from->n)
			faults_conflict(to, at, "%s", from->item[i].detail);
		else
			faults_add(to, at, "%s", from->item[i].detail);
	}
}

static const struct route *
route_of(const char *operation)
{
	const struct resource *const *res;
	const struct route *rt;

	for (res = resources; *res != NULL; res++)
		for (rt = (*res)->routes; rt->path != NULL; rt++)
			if (strcmp(rt->operation, operation) == 0)
				return rt;
	return NULL;
}

/* The id of the object that a request has created. */
static int64_t
id_created(const struct answer *an)
{
	int64_t id = 0;
	size_t i;

	for (i = 0; i < an->headers; i++)
		if (strcmp(an->header[i].name, "Location") == 0)
			(void)num_parse(strrchr(an->header[i].value, '/') + 1,
			    1, NUM_SAFE, &id);
	return id;
}

const struct err *
part_send(struct part *p, const char *operation, const struct shape *shape,
    const void *item, int64_t id)
{
	struct req sub = *p->im->rq;
	const struct err *e;
	struct buf body;

	if (p->im->matched > MATCHED_MAX) {
		faults_add(&p->im->rq->faults, p->at,
		    "cannot be checked: the values of earlier parts take too "
		    "long to match the patterns of the presets: shorten the "
		    "values, or simplify the patterns");
		return NULL;
	}
	arena_clear(p->im->scratch);
	sub.a = p->im->scratch;
	sub.route = route_of(operation);
	sub.id[0] = id;
	sub.body = NULL;
	sub.audited.action = p->im->rq->route->operation;
	sub.in[IN_IF_MATCH] = sub.in[IN_IF_NONE_MATCH] = NULL;
	faults_init(&sub.faults, sub.a);
	answer_init(&sub.answer);
	buf_init(&body, PART_BODY);
	if (shape != NULL)
		json_write_input(&body, shape, sub.route->mode, item);
	if ((e = buf_check(&body)) == NULL)
		e = route_call(&sub, body.data, body.len);
	p->im->matched += sub.faults.work;
	if (e == NULL && id == 0)
		p->id = id_created(&sub.answer);
	if (e == NULL && sub.route->mode == JSON_UPDATE)
		part_changed(p, sub.audited.changes);
	if (e != NULL && sub.faults.n > 0) {
		faults_bring(p, &sub.faults);
		e = NULL;
	}
	buf_release(&body);
	answer_release(&sub.answer);
	return e;
}

const struct err *
part_put(struct part *p, const char *create, const char *update,
    const struct shape *shape, const void *item)
{
	const bool is_new = p->id == 0;
	const struct err *e;

	e = part_send(p, is_new ? create : update, shape, item, p->id);
	p->item->id = p->id;
	if (e == NULL && is_new && p->id != 0)
		p->item->action = PART_CREATED;
	return e;
}

bool
part_is_once(const struct part *p, const char *member)
{
	const struct import_item *item = p->im->result.items.items;
	struct faults *f = &p->im->rq->faults;

	for (; p->id != 0 && item < p->item; item++)
		if (item->id == p->id && str_eq(item->type, p->item->type)) {
			faults_add(f, fault_pointer(f, p->at, member),
			    "is the same as that of an earlier one");
			return false;
		}
	return true;
}

const struct err *
part_targets(const struct part *p, const char *pipeline,
    const char *environment, int64_t *pipeline_id, struct maybe *environment_id)
{
	struct import *im = p->im;
	struct faults *f = &im->rq->faults;
	const struct err *e;

	environment_id->set = environment != NULL;
	if ((e = named_find(im->rq->db, NAMED_PIPELINE, im->project_id,
		 pipeline, pipeline_id)) != NULL ||
	    (e = named_find(im->rq->db, NAMED_ENVIRONMENT, im->project_id,
		 environment, &environment_id->n)) != NULL)
		return e;
	if (pipeline != NULL && *pipeline_id == 0)
		faults_add(f, fault_pointer(f, p->at, "pipeline"),
		    "is not the name of a pipeline of the project");
	if (environment != NULL && environment_id->n == 0)
		faults_add(f, fault_pointer(f, p->at, "environment"),
		    "is not the name of an environment of the project");
	return NULL;
}

const struct err *
part_text(struct arena *a, struct buf *text, struct json_text *out)
{
	const struct err *e = buf_check(text);

	if (e == NULL)
		out->s = arena_strndup(a, text->data, text->len);
	buf_release(text);
	return e;
}
