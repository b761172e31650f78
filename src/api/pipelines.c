/* SPDX-License-Identifier: ISC */
#include "api/pipelines.h"

#include "api/projects.h"
#include "api/resources.h"
#include "store/project.h"
#include "web/audited.h"

struct work {
	struct req *rq;
	const struct pipeline *sent;
	struct json_text presets; /* for its project */
	struct pipeline p;
};

static const struct err *
page_of_list(struct req *rq, struct page *p, struct list *out)
{
	return pipeline_page(rq->db, rq->a, req_int(rq, "projectId"), p, out);
}

static const struct err *
api_pipeline_list(struct req *rq)
{
	return answer_pages(rq, &pipeline_shape, page_of_list);
}

static const struct err *
api_pipeline_show(struct req *rq)
{
	const struct err *e;
	struct pipeline p;

	if ((e = pipeline_by_id(rq->db, rq->a, rq->id[0], &p)) != NULL)
		return e;
	answer_item(rq, &pipeline_shape, &p, p.version);
	return NULL;
}

static const struct err *
api_pipeline_judge(struct req *rq, const void *item)
{
	return pipeline_judge(rq->db, item, &rq->faults);
}

/* The locked row of the project prevents its deletion. */
static const struct err *
create_body(struct db *db, void *context)
{
	struct work *w = context;
	struct req *rq = w->rq;
	const struct err *e;
	int64_t id;

	w->p = *w->sent;
	w->p.created_by = (struct maybe){ .n = rq->who.user_id, .set = true };
	e = w->presets.s == NULL ? project_share(db, rq->a, w->p.project_id) :
				   project_presets_lock(rq, w->p.project_id);
	if (e != NULL && e->code != ERR_NOTFOUND)
		return e;
	if ((e = req_judge(rq)) != NULL)
		return e;
	if ((e = pipeline_insert(db, &w->p, &id)) != NULL)
		return req_taken(rq, e, rq->body);
	if (w->presets.s != NULL &&
	    (e = project_presets_add(rq, w->p.project_id, w->presets)) != NULL)
		return e;
	if ((e = audited_change(rq, AUDIT_OF_PIPELINE, id, w->p.project_id)) !=
	    NULL)
		return e;
	return pipeline_by_id(db, rq->a, id, &w->p);
}

const struct err *
pipeline_make(struct req *rq, const struct pipeline *sent,
    struct json_text presets)
{
	struct work w = { .rq = rq, .sent = sent, .presets = presets };
	const struct err *e;

	if ((e = req_transaction(rq, create_body, &w)) != NULL)
		return e;
	answer_location(rq, "/api/pipelines/%lld", (long long)w.p.id);
	answer_item(rq, &pipeline_shape, &w.p, w.p.version);
	return NULL;
}

static const struct err *
api_pipeline_create(struct req *rq)
{
	const struct json_text none = { .s = NULL };

	return pipeline_make(rq, rq->body, none);
}

static const struct err *
change_body(struct db *db, void *context)
{
	struct work *w = context;
	struct req *rq = w->rq;
	struct pipeline old;
	const struct err *e;

	if ((e = pipeline_lock(db, rq->a, rq->id[0], &w->p)) != NULL)
		return e;
	old = w->p;
	if ((e = req_update(rq, &pipeline_shape, old.version, &w->p)) != NULL ||
	    audited_same(rq, &pipeline_shape, &old, &w->p))
		return e;
	if ((e = pipeline_update(db, &w->p)) != NULL)
		return req_taken(rq, e, &w->p);
	if ((e = audited_change(rq, AUDIT_OF_PIPELINE, old.id,
		 old.project_id)) != NULL)
		return e;
	return pipeline_by_id(db, rq->a, rq->id[0], &w->p);
}

static const struct err *
api_pipeline_change(struct req *rq)
{
	struct work w = { .rq = rq };
	const struct err *e;

	if ((e = req_transaction(rq, change_body, &w)) != NULL)
		return e;
	answer_item(rq, &pipeline_shape, &w.p, w.p.version);
	return NULL;
}

static const struct err *
remove_body(struct db *db, void *context)
{
	struct work *w = context;
	const struct err *e;

	if ((e = pipeline_lock(db, w->rq->a, w->rq->id[0], &w->p)) != NULL)
		return e;
	if ((e = req_match(w->rq, &pipeline_shape, w->p.version)) != NULL)
		return e;
	if ((e = pipeline_delete(db, w->p.id)) != NULL)
		return e;
	return audited_change(w->rq, AUDIT_OF_PIPELINE, w->p.id,
	    w->p.project_id);
}

static const struct err *
api_pipeline_remove(struct req *rq)
{
	struct work w = { .rq = rq };

	return req_transaction(rq, remove_body, &w);
}

static const struct route_param pipeline_params[] = {
	ROUTE_PAGE,
	{ .name = "projectId",
	    .type = PARAM_INT,
	    .min = ID_MIN,
	    .doc = "Only pipelines of this project." },
	PARAM_END,
};

static const struct route routes[] = {
	LIST("/api/pipelines", ROLE_GUEST, pipeline_params, api_pipeline_list,
	    "listPipelines", "List pipelines with their steps", pipeline_shape),
	CREATE("/api/pipelines", ROLE_MAINTAINER, api_pipeline_create,
	    api_pipeline_judge, "createPipeline",
	    "Create a pipeline with its steps", pipeline_shape),
	SHOW("/api/pipelines/{id}", ROLE_VIEWER, api_pipeline_show,
	    "getPipeline", "Get a pipeline with its steps", pipeline_shape),
	CHANGE("/api/pipelines/{id}", ROLE_MAINTAINER, api_pipeline_change,
	    api_pipeline_judge, "updatePipeline", "Update a pipeline",
	    pipeline_shape),
	REMOVE("/api/pipelines/{id}", ROLE_MAINTAINER, ROUTE_GUARDED,
	    api_pipeline_remove, "deletePipeline",
	    "Delete a pipeline and its steps", NULL),
	ROUTE_END,
};

const struct resource pipelines_resource = {
	.tag = "pipelines",
	.about = "Ordered lists of steps.",
	.routes = routes,
};
