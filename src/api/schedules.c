/* SPDX-License-Identifier: ISC */
#include "api/resources.h"
#include "api/rules.h"
#include "deploy/deploy.h"
#include "deploy/scheduled.h"
#include "web/audited.h"

struct work {
	struct req *rq;
	struct schedule schedule;
};

static const struct err *
page_of_list(struct req *rq, struct page *p, struct list *out)
{
	struct schedule *s;
	const struct err *e;
	size_t i;

	e = schedule_page(rq->db, rq->a, req_int(rq, "projectId"), p, out);
	s = out->items;
	for (i = 0; e == NULL && i < out->n; i++)
		e = scheduled_open(rq->a, &s[i]);
	return e;
}

static const struct err *
api_schedule_list(struct req *rq)
{
	return answer_pages(rq, &schedule_shape, page_of_list);
}

static const struct err *
schedule_read(struct req *rq, int64_t id, struct schedule *out)
{
	const struct err *e;

	if ((e = schedule_by_id(rq->db, rq->a, id, out)) != NULL)
		return e;
	return scheduled_open(rq->a, out);
}

static const struct err *
api_schedule_show(struct req *rq)
{
	struct schedule s;
	const struct err *e;

	if ((e = schedule_read(rq, rq->id[0], &s)) != NULL)
		return e;
	answer_item(rq, &schedule_shape, &s, s.version);
	return NULL;
}

static const struct err *
api_schedule_judge(struct req *rq, const void *item)
{
	struct arena *a = arena_open(DEPLOY_WORK);
	struct deploy deploy = rules_context(rq, a);
	const struct err *e;

	e = scheduled_judge(&deploy, item);
	arena_close(a);
	return e;
}

static const struct err *
create_body(struct db *db, void *context)
{
	struct work *w = context;
	struct req *rq = w->rq;
	struct deploy deploy = rules_context(rq, rq->a);
	struct schedule sent = *(const struct schedule *)rq->body;
	const struct err *e;
	int64_t id;

	e = deployment_hold_project(db, rq->a, sent.project_id);
	if (e != NULL && e->code != ERR_NOTFOUND)
		return e;
	if ((e = req_judge(rq)) != NULL)
		return e;
	if ((e = scheduled_close(&deploy, &sent, NULL)) != NULL ||
	    (e = schedule_insert(db, &sent, &id)) != NULL ||
	    (e = audited_change(rq, AUDIT_OF_SCHEDULE, id, sent.project_id)) !=
		NULL)
		return e;
	return schedule_read(rq, id, &w->schedule);
}

/* The runner waits for the schedule that is due next. */
static void
written(const struct work *w)
{
	const struct deploy deploy = rules_context(w->rq, w->rq->a);

	deploy_wake(&deploy);
	answer_item(w->rq, &schedule_shape, &w->schedule, w->schedule.version);
}

static const struct err *
api_schedule_create(struct req *rq)
{
	struct schedule *sent = rq->body;
	struct work w = { .rq = rq };
	const struct err *e;

	if (sent->timezone == NULL)
		sent->timezone = "UTC";
	sent->created_by = (struct maybe){ .n = rq->who.user_id, .set = true };
	if ((e = req_transaction(rq, create_body, &w)) != NULL)
		return e;
	answer_location(rq, "/api/schedules/%lld", (long long)w.schedule.id);
	written(&w);
	return NULL;
}

/* Locks the project before its schedule, as the runner does. */
static const struct err *
schedule_hold(struct work *w)
{
	struct req *rq = w->rq;
	const struct err *e;

	e = schedule_by_id(rq->db, rq->a, rq->id[0], &w->schedule);
	if (e == NULL)
		e = deployment_hold_project(rq->db, rq->a,
		    w->schedule.project_id);
	if (e == NULL)
		e = schedule_lock(rq->db, rq->a, rq->id[0], &w->schedule);
	return e != NULL ? e : scheduled_open(rq->a, &w->schedule);
}

static const struct err *
change_body(struct db *db, void *context)
{
	struct work *w = context;
	struct req *rq = w->rq;
	struct deploy deploy = rules_context(rq, rq->a);
	struct schedule old;
	const struct err *e;

	if ((e = schedule_hold(w)) != NULL)
		return e;
	old = w->schedule;
	if ((e = req_update(rq, &schedule_shape, old.version, &w->schedule)) !=
		NULL ||
	    audited_same(rq, &schedule_shape, &old, &w->schedule))
		return e;
	if ((e = scheduled_close(&deploy, &w->schedule, &old)) != NULL ||
	    (e = schedule_update(db, &w->schedule)) != NULL ||
	    (e = audited_change(rq, AUDIT_OF_SCHEDULE, old.id,
		 old.project_id)) != NULL)
		return e;
	return schedule_read(rq, old.id, &w->schedule);
}

static const struct err *
api_schedule_change(struct req *rq)
{
	struct work w = { .rq = rq };
	const struct err *e;

	if ((e = req_transaction(rq, change_body, &w)) != NULL)
		return e;
	written(&w);
	return NULL;
}

static const struct err *
remove_body(struct db *db, void *context)
{
	struct work *w = context;
	const struct err *e;

	if ((e = schedule_hold(w)) != NULL)
		return e;
	if ((e = req_match(w->rq, &schedule_shape, w->schedule.version)) !=
	    NULL)
		return e;
	if ((e = schedule_delete(db, w->schedule.id)) != NULL)
		return e;
	return audited_change(w->rq, AUDIT_OF_SCHEDULE, w->schedule.id,
	    w->schedule.project_id);
}

static const struct err *
api_schedule_remove(struct req *rq)
{
	struct work w = { .rq = rq };

	return req_transaction(rq, remove_body, &w);
}

static const struct route_param schedule_params[] = {
	ROUTE_PAGE,
	{ .name = "projectId",
	    .type = PARAM_INT,
	    .min = ID_MIN,
	    .doc = "Only schedules of this project." },
	PARAM_END,
};

static const struct route routes[] = {
	LIST("/api/schedules", ROLE_GUEST, schedule_params, api_schedule_list,
	    "listSchedules", "List schedules, ordered by name", schedule_shape),
	CREATE("/api/schedules", ROLE_MAINTAINER, api_schedule_create,
	    api_schedule_judge, "createSchedule",
	    "Create a schedule of a project", schedule_shape),
	SHOW("/api/schedules/{id}", ROLE_VIEWER, api_schedule_show,
	    "getSchedule", "Get a schedule", schedule_shape),
	CHANGE("/api/schedules/{id}", ROLE_MAINTAINER, api_schedule_change,
	    api_schedule_judge, "updateSchedule", "Update a schedule",
	    schedule_shape),
	REMOVE("/api/schedules/{id}", ROLE_MAINTAINER, ROUTE_GUARDED,
	    api_schedule_remove, "deleteSchedule",
	    "Delete a schedule; its deployments stay", NULL),
	ROUTE_END,
};

const struct resource schedules_resource = {
	.tag = "schedules",
	.about = "Deployments that start at certain times.",
	.routes = routes,
};
