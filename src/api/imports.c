/* SPDX-License-Identifier: ISC */
/*
 * Projects as documents: export and import.
 *
 * An import sends the requests that a client would send to create or change each
 * part of the project, inside one transaction. So it obeys the same rules, and
 * the audit log has an entry of each change. A dry run rolls the transaction back.
 */
#include <string.h>

#include "api/part.h"
#include "api/resources.h"
#include "api/rules.h"
#include "core/str.h"
#include "deploy/deploy.h"
#include "store/named.h"
#include "web/audited.h"

#define RESULT_MAX ((size_t)24 << 20) /* memory for the result of an import */
#define WORK_MAX ((size_t)8 << 20)    /* for one request of an import */

struct import_request {
	struct list document; /* one struct document */
	bool dry_run;
};

#define R(m, ...) FIELD(struct import_request, m, FIELD_IN | __VA_ARGS__)
static const struct field request_fields[] = {
	R(document, FIELD_MUST | FIELD_ONE, .shape = &document_shape,
	    .doc = "The project as an export returns it."),
	R(dry_run, 0, .doc = "Whether to change nothing; default false."),
	FIELD_END,
};
static const struct shape request_shape = {
	.name = "ImportRequest",
	.fields = request_fields,
	.size = sizeof(struct import_request),
	.doc = "A project to create or change.",
};

static const char *const actions[] = { PART_CREATED, PART_CHANGED,
	PART_UNCHANGED, NULL };
static const char *const types[] = { "project", "pipeline", "environment",
	"schedule", "notifier", NULL };

#define I(m, ...) FIELD(struct import_item, m, FIELD_OUT, __VA_ARGS__)
static const struct field item_fields[] = {
	I(type, .values = types, .named = "ImportType", .doc = "Type."),
	I(name, .doc = "Name; of a notifier, its target."),
	I(action, .values = actions, .named = "ImportAction",
	    .doc = "What the import does with it."),
	I(changes, .shape = &audit_change_shape,
	    .doc = "Members that are changed, as in the audit log."),
	FIELD_END,
};
static const struct shape item_shape = {
	.name = "ImportItem",
	.fields = item_fields,
	.size = sizeof(struct import_item),
	.doc = "A part of an imported project.",
};

static const struct field missing_fields[] = {
	FIELD(struct import_missing, pointer, FIELD_OUT,
	    .doc = "JSON Pointer into the body."),
	FIELD_END,
};
static const struct shape missing_shape = {
	.name = "ImportMissing",
	.fields = missing_fields,
	.size = sizeof(struct import_missing),
	.bare = true,
};

#define O(m, ...) FIELD(struct import_result, m, FIELD_OUT | __VA_ARGS__)
static const struct field result_fields[] = {
	O(project_id, FIELD_NULL,
	    .doc = "Id of the project; null if a dry run would create it."),
	O(dry_run, 0, .doc = "Whether nothing was changed."),
	O(items, 0, .shape = &item_shape, .doc = "The parts of the project."),
	O(missing, 0, .shape = &missing_shape,
	    .doc = "Secrets that are null in the document and not stored, so "
		   "they must be set, and new webhooks, which have new "
		   "secrets."),
	FIELD_END,
};
static const struct shape result_shape = {
	.name = "ImportResult",
	.fields = result_fields,
	.size = sizeof(struct import_result),
	.doc = "The differences between a project and a document.",
};

static const struct err *
api_project_export(struct req *rq)
{
	const size_t skip = strlen(DOCUMENT_BEFORE);
	const struct err *e;
	struct buf text;

	buf_init(&text, 2 * DOCUMENT_MAX + WORK_MAX);
	if ((e = document_write(rq->db, rq->id[0], &text)) == NULL)
		answer_json(rq, text.data + skip, text.len - skip - 1, 0);
	buf_release(&text);
	return e;
}

/* Makes the steps of an existing pipeline, by position, those of the
 * document. */
static const struct err *
steps_put(const struct part *of, const struct list *steps)
{
	struct import_item changes = { .action = PART_UNCHANGED,
		.changes.s = "[]" };
	struct part p = { of->im, of->at, &changes, of->id };
	const struct arena_mark before = arena_mark(of->im->a);
	const struct step *had;
	struct pipeline old;
	const struct err *e;
	struct step step;
	size_t i;

	e = pipeline_by_id(p.im->rq->db, p.im->a, of->id, &old);
	had = old.steps.items;
	for (i = 0; e == NULL && i < steps->n; i++) {
		p.at = arena_printf(p.im->a, "%s/steps/%zu", of->at, i);
		p.id = i < old.steps.n ? had[i].id : 0;
		step = ((const struct step *)steps->items)[i];
		step.pipeline_id = of->id;
		e = part_put(&p, "createStep", "updateStep", &step_shape,
		    &step);
	}
	for (; e == NULL && i < old.steps.n; i++) {
		changes.action = PART_CHANGED;
		e = part_send(&p, "deleteStep", NULL, NULL, had[i].id);
	}
	arena_rewind(of->im->a, &before); /* the scripts may be large */
	if (e == NULL && !str_eq(changes.action, PART_UNCHANGED))
		part_changed(of,
		    "[{\"name\":\"steps\",\"from\":null,"
		    "\"to\":null}]");
	return e;
}

static const struct err *
pipeline_put(struct import *im, size_t index)
{
	struct pipeline p = ((
	    const struct pipeline *)im->doc->pipelines.items)[index];
	struct part part = part_begin(im, "pipeline", p.name,
	    part_pointer(im, "pipelines", index));
	const struct err *e;
	bool had;

	p.project_id = im->project_id;
	e = named_find(im->rq->db, NAMED_PIPELINE, p.project_id, p.name,
	    &part.id);
	had = part.id != 0;
	if (e != NULL || !part_is_once(&part, "name"))
		return e;
	e = part_put(&part, "createPipeline", "updatePipeline", &pipeline_shape,
	    &p);
	return e != NULL || !had ? e : steps_put(&part, &p.steps);
}

static bool
is_stored(const struct list *had, const struct environment_variable *v)
{
	const struct environment_variable *other = had->items;
	size_t i;

	for (i = 0; i < had->n; i++)
		if (other[i].secret && str_eq(other[i].key, v->key))
			return true;
	return false;
}

/* Leaves out secret variables without a value, unless one is stored. */
static const struct err *
variables_take(const struct part *p, struct json_text *variables,
    struct json_text stored)
{
	struct arena *a = p->im->work;
	struct environment_variable *v;
	const struct err *e;
	struct list list, had;
	struct buf text;
	size_t i, n = 0;

	if ((e = json_items(a, &environment_variable_shape, variables->s,
		 &list)) != NULL ||
	    (e = json_items(a, &environment_variable_shape, stored.s, &had)) !=
		NULL)
		return e;
	v = list.items;
	for (i = 0; i < list.n; i++)
		if (v[i].secret && v[i].value == NULL &&
		    !is_stored(&had, &v[i]))
			part_missing(p->im,
			    arena_printf(p->im->a, "%s/variables/%zu/value",
				p->at, i));
		else
			v[n++] = v[i];
	list.n = n;
	buf_init(&text, PART_BODY);
	json_write_list(&text, &environment_variable_shape, &list, 0);
	return part_text(a, &text, variables);
}

/* An approver that the environment has, who may have been deleted since. */
struct approver {
	int64_t id;
	const char *name; /* NULL = the document has named this one */
};

static const struct err *
approvers_read(const struct part *p, struct json_text stored, struct list *out)
{
	struct arena *a = p->im->work;
	const struct environment_approver *from;
	const struct err *e;
	struct approver *to;
	struct list ids;
	size_t i;

	*out = (struct list){ .n = 0 };
	if ((e = json_items(a, &environment_approver_shape, stored.s, &ids)) !=
	    NULL)
		return e;
	from = ids.items;
	out->items = to = arena_alloc(a, ids.n, sizeof(*to));
	for (i = 0; e == NULL && i < ids.n; i++) {
		to[i].id = from[i].user_id;
		e = user_name_of(p->im->rq->db, a, to[i].id, &to[i].name);
	}
	out->n = e == NULL ? ids.n : 0;
	return e;
}

/* Finds the approver of that name: one that the environment has, or else a user;
 * 0 = none. */
static const struct err *
approver_find(const struct part *p, const struct list *had, const char *name,
    int64_t *id)
{
	struct approver *one = had->items;
	size_t i;

	for (i = 0; i < had->n; i++) {
		if (!str_eq(one[i].name, name))
			continue;
		*id = one[i].id;
		one[i].name = NULL;
		return NULL;
	}
	return named_find(p->im->rq->db, NAMED_USER, 0, name, id);
}

static const struct err *
approvers_take(const struct part *p, const struct list *names,
    struct json_text stored, struct json_text *out)
{
	const struct document_approver *name = names->items;
	const char *ids = "", *before = "";
	const struct err *e;
	struct list had;
	int64_t id;
	size_t i;

	if ((e = approvers_read(p, stored, &had)) != NULL)
		return e;
	for (i = 0; i < names->n; i++) {
		if ((e = approver_find(p, &had, name[i].username, &id)) != NULL)
			return e;
		if (id == 0)
			faults_add(&p->im->rq->faults,
			    arena_printf(p->im->a, "%s/approvers/%zu", p->at,
				i),
			    "is not the name of a user");
		ids = arena_printf(p->im->work, "%s%s%lld", ids, before,
		    (long long)id);
		before = ",";
	}
	out->s = arena_printf(p->im->work, "[%s]", ids);
	return NULL;
}

static const struct err *
environment_put(struct import *im, size_t index)
{
	const struct document_environment *from =
	    (const struct document_environment *)im->doc->environments.items +
	    index;
	struct environment env = from->e, old = { .id = 0 };
	struct part part = part_begin(im, "environment", env.name,
	    part_pointer(im, "environments", index));
	struct db *db = im->rq->db;
	const struct err *e;

	env.project_id = im->project_id;
	e = named_find(db, NAMED_ENVIRONMENT, env.project_id, env.name,
	    &part.id);
	if (e != NULL || !part_is_once(&part, "name"))
		return e;
	if (part.id != 0)
		e = environment_by_id(db, im->work, part.id, &old);
	if (e == NULL)
		e = approvers_take(&part, &from->approvers, old.approvers,
		    &env.approvers);
	if (e == NULL)
		e = variables_take(&part, &env.variables, old.variables);
	if (e != NULL || im->rq->faults.n > 0)
		return e;
	return part_put(&part, "createEnvironment", "updateEnvironment",
	    &environment_shape, &env);
}

static const struct err *
schedule_put(struct import *im, size_t index)
{
	const struct document_schedule *from =
	    (const struct document_schedule *)im->doc->schedules.items + index;
	struct schedule s = from->s;
	struct part part = part_begin(im, "schedule", s.name,
	    part_pointer(im, "schedules", index));
	const struct err *e;

	s.project_id = im->project_id;
	e = part_targets(&part, from->pipeline, from->environment,
	    &s.pipeline_id, &s.environment_id);
	if (e == NULL)
		e = named_find(im->rq->db, NAMED_SCHEDULE, s.project_id, s.name,
		    &part.id);
	if (e != NULL || !part_is_once(&part, "name") || im->rq->faults.n > 0)
		return e;
	return part_put(&part, "createSchedule", "updateSchedule",
	    &schedule_shape, &s);
}

/* The id of the last one before it in the document that is alike, 0 = none: a
 * project can have several. */
static int64_t
notifier_before(const struct import *im, size_t index)
{
	const struct document_notifier *all = im->doc->notifiers.items;
	const struct import_item *of = im->result.items.items;
	int64_t id = 0;
	size_t i;

	of += im->result.items.n - 1 - index;
	for (i = 0; i < index; i++)
		if (str_eq(all[i].n.kind, all[index].n.kind) &&
		    str_eq(all[i].n.target, all[index].n.target) &&
		    str_eq(all[i].environment, all[index].environment))
			id = of[i].id;
	return id;
}

static const struct err *
notifier_put(struct import *im, size_t index)
{
	const struct document_notifier *from =
	    (const struct document_notifier *)im->doc->notifiers.items + index;
	struct notifier n = from->n;
	struct part part = part_begin(im, "notifier", n.target,
	    part_pointer(im, "notifiers", index));
	const struct err *e;
	int64_t none;

	n.project_id = (struct maybe){ im->project_id, true };
	n.id = notifier_before(im, index);
	if ((e = part_targets(&part, NULL, from->environment, &none,
		 &n.environment_id)) != NULL ||
	    (e = named_notifier(im->rq->db, &n, &part.id)) != NULL ||
	    im->rq->faults.n > 0)
		return e;
	if (part.id == 0 && str_eq(n.kind, NOTIFIER_WEBHOOK))
		part_missing(im, part.at);
	return part_put(&part, "createNotifier", "updateNotifier",
	    &notifier_shape, &n);
}

typedef const struct err *put(struct import *, size_t index);

/* Continues after a fault, so that the response lists those of all. */
static const struct err *
each(struct import *im, const struct list *list, put *one)
{
	const struct err *e = NULL;
	size_t i;

	for (i = 0; e == NULL && i < list->n; i++) {
		arena_clear(im->work);
		e = one(im, i);
	}
	return e != NULL ? e : faults_check(&im->rq->faults);
}

static const struct err *
import_all(struct import *im)
{
	const struct document *doc = im->doc;
	struct part p = part_begin(im, "project", doc->p.name, "/document");
	const struct err *e;
	struct project old;

	if ((e = import_project_begin(&p, &old)) != NULL ||
	    (e = faults_check(&im->rq->faults)) != NULL ||
	    (e = each(im, &doc->pipelines, pipeline_put)) != NULL ||
	    (e = each(im, &doc->environments, environment_put)) != NULL ||
	    (e = import_project_put(&p, &old)) != NULL ||
	    (e = faults_check(&im->rq->faults)) != NULL ||
	    (e = each(im, &doc->schedules, schedule_put)) != NULL)
		return e;
	return each(im, &doc->notifiers, notifier_put);
}

static void
result_begin(struct import *im)
{
	const struct document *doc = im->doc;
	const size_t n = 1 + doc->pipelines.n + doc->environments.n +
	    doc->schedules.n + doc->notifiers.n;

	arena_clear(im->a);
	im->is_done = false;
	im->result.items = (struct list){ .items = arena_alloc(im->a, n,
					      sizeof(struct import_item)) };
	im->result.missing = (struct list){
		.items = arena_alloc(im->a, PART_MISSING,
		    sizeof(struct import_missing))
	};
}

/* An error at the end of a dry run rolls it back. */
static const struct err *
import_body(struct db *db, void *context)
{
	struct import *im = context;
	const struct err *e;

	(void)db;
	result_begin(im);
	if ((e = import_all(im)) != NULL)
		return e;
	im->is_done = true;
	im->result.project_id = (struct maybe){ im->project_id,
		!im->is_new || !im->result.dry_run };
	audited_nothing(im->rq); /* its parts are audited */
	return im->result.dry_run ? err_new(ERR_CONFLICT, "dry run") : NULL;
}

static const struct err *
api_project_import(struct req *rq)
{
	const struct import_request *sent = rq->body;
	const struct deploy deploy = rules_context(rq, rq->a);
	struct import im = { .rq = rq,
		.doc = sent->document.items,
		.result.dry_run = sent->dry_run };
	const struct err *e;

	im.a = arena_open(RESULT_MAX);
	im.work = arena_open(WORK_MAX);
	im.scratch = arena_open(WORK_MAX);
	e = req_transaction(rq, import_body, &im);
	if (im.is_done && sent->dry_run) {
		audited_nothing(rq);
		e = NULL;
	}
	if (e == NULL) {
		deploy_wake(&deploy);
		answer_item(rq, &result_shape, &im.result, 0);
	}
	arena_close(im.scratch);
	arena_close(im.work);
	arena_close(im.a);
	return e;
}

static const struct route routes[] = {
	{ .method = METHOD_GET,
	    .path = "/api/projects/{id}/export",
	    .pool = POOL_SLOW,
	    .role = ROLE_MAINTAINER,
	    .handler = api_project_export,
	    .operation = "exportProject",
	    .summary = "Get a project and all that belongs to it as a document "
		       "that can be imported",
	    .doc = "A document has at most 4 MiB, 40,000 values and 1000 parts "
		   "of one kind. A project that needs more is a conflict.",
	    .out = &document_shape,
	    .status = 200,
	    .errors = route_conflict },
	{ .method = METHOD_POST,
	    .path = "/api/projects/import",
	    .pool = POOL_SLOW,
	    .flags = ROUTE_DOCUMENT,
	    .role = ROLE_MAINTAINER,
	    .in = &request_shape,
	    .mode = JSON_CREATE,
	    .handler = api_project_import,
	    .operation = "importProject",
	    .summary = "Create or change a project according to a document",
	    .doc = "The body has at most 8 MiB. Parts are found by name, which "
		   "must not be repeated. What "
		   "the document does not name stays. One transaction changes "
		   "everything or nothing. A second import of the same "
		   "document changes nothing.",
	    .out = &result_shape,
	    .status = 200,
	    .errors = route_conflict },
	ROUTE_END,
};

const struct resource imports_resource = {
	.tag = "projects",
	.routes = routes,
};
