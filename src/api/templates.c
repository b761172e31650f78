/* SPDX-License-Identifier: ISC */
#include <string.h>

#include "api/pipelines.h"
#include "api/projects.h"
#include "api/resources.h"
#include "api/template.h"
#include "core/str.h"

struct template_request {
	const char *template_id;
	int64_t project_id;
	const char *name;
	const char *description;
	const char *presets; /* add, none; NULL = add */
};

#define T(m, fl, ...)                                                          \
	FIELD(struct template_request, m, FIELD_IN | (fl), __VA_ARGS__)

static const char *const preset_choices[] = { "add", "none", NULL };
static const struct field template_request_fields[] = {
	T(template_id, FIELD_MUST, .min = 1, .max = 64,
	    .shown = "[a-z0-9][a-z0-9._-]*", .doc = "Template to use."),
	T(project_id, FIELD_MUST, .min = 1,
	    .doc = "Project of the new "
		   "pipeline."),
	T(name, FIELD_LINE | FIELD_NULL, .min = 1, .max = 100,
	    .doc = "Name of the pipeline; the default is the template's name."),
	T(description, FIELD_NULL | FIELD_TEXT, .max = 500,
	    .doc = "Description of the pipeline; the default is the "
		   "template's."),
	T(presets, 0, .values = preset_choices, .named = "TemplatePresets",
	    .doc = "add (the default) adds those envPresets of the template "
		   "whose keys the project lacks; none leaves the project "
		   "unchanged."),
	FIELD_END,
};
static const struct shape template_request_shape = {
	.name = "TemplateRequest",
	.fields = template_request_fields,
	.size = sizeof(struct template_request),
	.doc = "A pipeline to create from a template.",
};

static const struct err *
page_of_templates(struct req *rq, struct page *p, struct list *out)
{
	const struct list *all = template_all();
	const size_t first = (size_t)page_offset(p);

	(void)rq;
	*out = (struct list){ .n = 0 };
	p->total = (int64_t)all->n;
	if (first >= all->n)
		return NULL;
	out->items = (struct template *)all->items + first;
	out->n = all->n - first;
	if (out->n > (size_t)p->limit)
		out->n = (size_t)p->limit;
	return NULL;
}

static const struct err *
api_template_list(struct req *rq)
{
	return answer_pages(rq, &template_shape, page_of_templates);
}

static const struct err *
api_template_show(struct req *rq)
{
	const struct template *t = template_find(rq->slug[0]);

	if (t == NULL)
		return err_new(ERR_NOTFOUND, "template %s", rq->slug[0]);
	answer_item(rq, &template_shape, t, 0);
	return NULL;
}

static struct list
steps_of_template(struct arena *a, const struct template *t)
{
	const struct template_step *from = t->steps.items;
	struct step *to = arena_alloc(a, t->steps.n, sizeof(*to));
	size_t i;

	for (i = 0; i < t->steps.n; i++) {
		to[i].name = from[i].name;
		to[i].script = from[i].script;
		to[i].directory = from[i].directory;
		to[i].run_when = from[i].run_when;
		to[i].may_fail = from[i].may_fail;
		to[i].timeout_seconds = from[i].timeout_seconds;
	}
	return (struct list){ .items = to, .n = t->steps.n };
}

/* The requested pipeline, without its steps; `t` may be NULL. */
static struct pipeline
pipeline_of(const struct template_request *sent, const struct template *t)
{
	struct pipeline p = {
		.project_id = sent->project_id,
		.name = sent->name,
		.description = sent->description,
	};

	if (p.name == NULL && t != NULL)
		p.name = t->name;
	if (p.description == NULL && t != NULL)
		p.description = t->description;
	if (t != NULL)
		p.checkout = t->checkout;
	return p;
}

/* The presets to add to the project; `t` may be NULL. */
static struct json_text
presets_of(const struct template_request *sent, const struct template *t)
{
	const struct json_text none = { .s = NULL };

	return t == NULL || str_eq(sent->presets, "none") ? none :
							    t->env_presets;
}

static const struct err *
api_template_judge(struct req *rq, const void *item)
{
	const struct template_request *sent = item;
	const struct template *t = NULL;
	const struct err *e;
	struct pipeline p;

	if (sent->template_id != NULL &&
	    (t = template_find(sent->template_id)) == NULL)
		faults_add(&rq->faults, "/templateId",
		    "unknown template; GET /api/templates lists them");
	p = pipeline_of(sent, faults_has(&rq->faults, "/name") ? NULL : t);
	if ((e = pipeline_judge(rq->db, &p, &rq->faults)) != NULL)
		return e;
	if (t == NULL || sent->project_id == 0 ||
	    faults_has(&rq->faults, "/presets"))
		return NULL;
	return project_presets_judge(rq, sent->project_id, presets_of(sent, t));
}

static const struct err *
api_template_use(struct req *rq)
{
	const struct template_request *sent = rq->body;
	const struct template *t = template_find(sent->template_id);
	struct pipeline p = pipeline_of(sent, t);

	if (t != NULL)
		p.steps = steps_of_template(rq->a, t);
	return pipeline_make(rq, &p, presets_of(sent, t));
}

static const struct route routes[] = {
	LIST("/api/pipelines/templates", ROLE_GUEST, route_page,
	    api_template_list, "listPipelineTemplates",
	    "List pipeline templates; same as /api/templates", template_shape),
	LIST("/api/templates", ROLE_GUEST, route_page, api_template_list,
	    "listTemplates", "List pipeline templates", template_shape),
	{ .method = METHOD_GET,
	    .path = "/api/templates/{id}",
	    .role = ROLE_GUEST,
	    .flags = ROUTE_SLUG,
	    .handler = api_template_show,
	    .operation = "getTemplate",
	    .summary = "Get a template",
	    .out = &template_shape,
	    .status = 200 },
	{ .method = METHOD_POST,
	    .path = "/api/pipelines/from-template",
	    .role = ROLE_MAINTAINER,
	    .in = &template_request_shape,
	    .mode = JSON_CREATE,
	    .handler = api_template_use,
	    .judge = api_template_judge,
	    .operation = "createPipelineFromTemplate",
	    .summary = "Create a pipeline from a template",
	    .doc = "The same transaction adds those envPresets of the template "
		   "whose keys the project lacks, unless presets is none.",
	    .out = &pipeline_shape,
	    .status = 201,
	    .errors = route_conflict },
	ROUTE_END,
};

const struct resource templates_resource = {
	.tag = "templates",
	.about = "Ready-made pipelines.",
	.routes = routes,
	.load = template_load,
};
