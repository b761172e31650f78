/* SPDX-License-Identifier: ISC */
#include "api/resources.h"
#include "store/pipeline.h"
#include "web/audited.h"

struct work {
	struct req *rq;
	int64_t project_id;
	struct step step;
};

static const struct err *
page_of_list(struct req *rq, struct page *p, struct list *out)
{
	return step_page(rq->db, rq->a, req_int(rq, "pipelineId"), p, out);
}

static const struct err *
api_step_list(struct req *rq)
{
	return answer_pages(rq, &step_shape, page_of_list);
}

static const struct err *
api_step_show(struct req *rq)
{
	const struct err *e;
	struct step s;

	if ((e = step_by_id(rq->db, rq->a, rq->id[0], &s)) != NULL)
		return e;
	answer_item(rq, &step_shape, &s, s.version);
	return NULL;
}

static const struct err *
api_step_judge(struct req *rq, const void *item)
{
	return step_judge(rq->db, item, &rq->faults);
}

static const struct err *
create_body(struct db *db, void *context)
{
	struct work *w = context;
	struct req *rq = w->rq;
	const struct step *sent = rq->body;
	const struct err *e;
	int64_t id;

	e = pipeline_hold(db, rq->a, sent->pipeline_id, &w->project_id);
	if (e != NULL && e->code != ERR_NOTFOUND)
		return e;
	if ((e = req_judge(rq)) != NULL)
		return e;
	if ((e = step_insert(db, sent, &id)) != NULL ||
	    (e = audited_change(rq, AUDIT_OF_STEP, id, w->project_id)) != NULL)
		return e;
	return step_by_id(db, rq->a, id, &w->step);
}

static const struct err *
api_step_create(struct req *rq)
{
	struct work w = { .rq = rq };
	const struct err *e;

	if ((e = req_transaction(rq, create_body, &w)) != NULL)
		return e;
	answer_location(rq, "/api/steps/%lld", (long long)w.step.id);
	answer_item(rq, &step_shape, &w.step, w.step.version);
	return NULL;
}

/* Reads the step again after locking its pipeline's row: it may have been moved
 * or deleted meanwhile. */
static const struct err *
step_hold(struct db *db, struct work *w)
{
	struct req *rq = w->rq;
	const struct err *e;

	if ((e = step_by_id(db, rq->a, rq->id[0], &w->step)) != NULL)
		return e;
	if ((e = pipeline_hold(db, rq->a, w->step.pipeline_id,
		 &w->project_id)) != NULL)
		return e;
	return step_by_id(db, rq->a, rq->id[0], &w->step);
}

static const struct err *
change_body(struct db *db, void *context)
{
	struct work *w = context;
	struct req *rq = w->rq;
	struct step old;
	const struct err *e;

	if ((e = step_hold(db, w)) != NULL)
		return e;
	old = w->step;
	if ((e = req_update(rq, &step_shape, old.version, &w->step)) != NULL)
		return e;
	if ((e = step_place(db, &w->step)) != NULL ||
	    audited_same(rq, &step_shape, &old, &w->step))
		return e;
	if ((e = step_update(db, &old, &w->step)) != NULL ||
	    (e = audited_change(rq, AUDIT_OF_STEP, old.id, w->project_id)) !=
		NULL)
		return e;
	return step_by_id(db, rq->a, rq->id[0], &w->step);
}

static const struct err *
api_step_change(struct req *rq)
{
	struct work w = { .rq = rq };
	const struct err *e;

	if ((e = req_transaction(rq, change_body, &w)) != NULL)
		return e;
	answer_item(rq, &step_shape, &w.step, w.step.version);
	return NULL;
}

static const struct err *
remove_body(struct db *db, void *context)
{
	struct work *w = context;
	const struct err *e;

	if ((e = step_hold(db, w)) != NULL)
		return e;
	if ((e = req_match(w->rq, &step_shape, w->step.version)) != NULL)
		return e;
	if ((e = step_delete(db, &w->step)) != NULL)
		return e;
	return audited_change(w->rq, AUDIT_OF_STEP, w->step.id, w->project_id);
}

static const struct err *
api_step_remove(struct req *rq)
{
	struct work w = { .rq = rq };

	return req_transaction(rq, remove_body, &w);
}

static const struct route_param step_params[] = {
	ROUTE_PAGE,
	{ .name = "pipelineId",
	    .type = PARAM_INT,
	    .min = ID_MIN,
	    .doc = "Only steps of this pipeline." },
	PARAM_END,
};

static const struct route routes[] = {
	LIST("/api/steps", ROLE_GUEST, step_params, api_step_list, "listSteps",
	    "List steps, ordered by position", step_shape),
	CREATE("/api/steps", ROLE_MAINTAINER, api_step_create, api_step_judge,
	    "createStep", "Create a step", step_shape),
	SHOW("/api/steps/{id}", ROLE_VIEWER, api_step_show, "getStep",
	    "Get a step", step_shape),
	CHANGE("/api/steps/{id}", ROLE_MAINTAINER, api_step_change,
	    api_step_judge, "updateStep", "Update or move a step", step_shape),
	REMOVE("/api/steps/{id}", ROLE_MAINTAINER, ROUTE_GUARDED,
	    api_step_remove, "deleteStep", "Delete a step", NULL),
	ROUTE_END,
};

const struct resource steps_resource = {
	.tag = "steps",
	.about = "Shell scripts of a pipeline.",
	.routes = routes,
};
