/* SPDX-License-Identifier: ISC */
#include "api/replay.h"
#include "api/resources.h"
#include "deploy/deploy.h"
#include "store/waiting.h"

/* What a transaction works on. Its own arena is cleared before each retry; the
 * request's is not. */
struct work {
	struct req *rq;
	struct arena *a;
	struct deploy deploy;
	struct idempotency key;
	bool replayed;
	struct deployment made;
};

static const struct err *
api_deployment_list(struct req *rq)
{
	const struct deployment_filter filter = {
		.project_id = req_int(rq, "projectId"),
		.pipeline_id = req_int(rq, "pipelineId"),
		.environment_id = req_int(rq, "environmentId"),
		.status = req_str(rq, "status"),
		.branch = req_str(rq, "branch"),
		.before = req_int(rq, "cursor"),
		.limit = req_int(rq, "limit"),
	};
	const struct err *e;
	struct list list;
	int64_t next;

	e = deployment_page(rq->db, rq->a, &filter, &list, &next);
	if (e != NULL)
		return e;
	answer_cursor(rq, &deployment_shape, &list, filter.limit, next);
	return NULL;
}

/* Responds with the current state of one deployment. */
static const struct err *
deployment_answer(struct req *rq, struct arena *a, int64_t id)
{
	const struct err *e;
	struct deployment d;

	if ((e = deployment_by_id(rq->db, a, id, &d)) != NULL)
		return e;
	answer_item(rq, &deployment_shape, &d, 0);
	return NULL;
}

static const struct err *
api_deployment_show(struct req *rq)
{
	return deployment_answer(rq, rq->a, rq->id[0]);
}

/* The order that the user's request describes. */
static struct deploy_order
request_order(const struct req *rq, const struct deployment_request *sent)
{
	return (struct deploy_order){ .sent = sent,
		.trigger = "manual",
		.created_by = { .n = rq->who.user_id, .set = true },
		.role = rq->role };
}

static const struct err *
api_deployment_judge(struct req *rq, const void *item)
{
	struct arena *a = arena_open(DEPLOY_WORK);
	const struct deploy_order order = request_order(rq, item);
	struct deploy deploy = req_deploy(rq, a);
	struct deployment d;
	const struct err *e;

	e = deploy_judge(&deploy, &order, &d);
	arena_close(a);
	return e;
}

/* Common to creating and retrying a deployment. */
static const struct err *
work_begin(struct work *w)
{
	arena_clear(w->a);
	faults_init(&w->rq->faults, w->rq->a);
	return replay_find(w->rq, &w->key, &w->replayed);
}

static const struct err *
work_end(struct work *w)
{
	const struct err *e;

	if ((e = waiting_begin(w->rq->db, w->a, &w->made)) != NULL)
		return e;
	answer_item(w->rq, &deployment_shape, &w->made, 0);
	return replay_save(w->rq, &w->key, w->made.id);
}

static const struct err *
create_body(struct db *db, void *context)
{
	struct work *w = context;
	const struct deploy_order order = request_order(w->rq, w->rq->body);
	const struct err *e;

	(void)db;
	if ((e = work_begin(w)) != NULL || w->replayed)
		return e;
	if ((e = deploy_create(&w->deploy, &order, &w->made)) != NULL)
		return e;
	return work_end(w);
}

static const struct err *
retry_body(struct db *db, void *context)
{
	struct work *w = context;
	const struct err *e;

	(void)db;
	if ((e = work_begin(w)) != NULL || w->replayed)
		return e;
	e = deploy_retry(&w->deploy, w->rq->id[0], w->rq->who.user_id,
	    w->rq->role, &w->made);
	if (e != NULL)
		return e;
	return work_end(w);
}

/* A rejected request may be the second of two with the same key: while it
 * waited for the first, the conditions may have changed. Then it returns the
 * first one's response. */
static const struct err *
first_answer(struct work *w, const struct err *refused)
{
	const struct err *e;

	if (refused->sys != DB_DUPLICATE &&
	    err_kinds[refused->code].http >= 500)
		return refused;
	e = replay_find(w->rq, &w->key, &w->replayed);
	if (e != NULL || w->replayed)
		return e;
	if (refused->sys != DB_DUPLICATE)
		return refused;
	return err_public(ERR_CONFLICT,
	    "Another request with this Idempotency-Key is in progress. Try "
	    "again in a moment.");
}

/* Runs the body. Of concurrent requests with the same key, one succeeds and the
 * others return its response. */
static const struct err *
deployment_make(struct req *rq, db_body *body)
{
	struct work w = { .rq = rq };
	const struct err *e;

	if ((e = replay_init(rq, &w.key)) != NULL)
		return e;
	w.a = arena_open(DEPLOY_WORK);
	w.deploy = req_deploy(rq, w.a);
	e = db_transaction(rq->db, body, &w);
	if (e != NULL && w.key.idempotency_key != NULL)
		e = first_answer(&w, e);
	arena_close(w.a);
	if (e != NULL)
		return e;
	answer_location(rq, "/api/deployments/%lld",
	    (long long)w.key.deployment_id);
	if (!w.replayed)
		deploy_wake(&w.deploy);
	return NULL;
}

static const struct err *
api_deployment_create(struct req *rq)
{
	return deployment_make(rq, create_body);
}

static const struct err *
api_deployment_retry(struct req *rq)
{
	return deployment_make(rq, retry_body);
}

static const struct err *
cancel_body(struct db *db, void *context)
{
	struct work *w = context;
	const struct err *e;

	arena_clear(w->a);
	if ((e = deployment_cancel(db, w->a, w->rq->id[0])) != NULL)
		return e;
	return deployment_answer(w->rq, w->a, w->rq->id[0]);
}

static const struct err *
api_deployment_cancel(struct req *rq)
{
	struct work w = { .rq = rq, .a = arena_open(DEPLOY_WORK) };
	const struct err *e;

	w.deploy = req_deploy(rq, w.a);
	e = db_transaction(rq->db, cancel_body, &w);
	arena_close(w.a);
	if (e == NULL)
		deploy_wake(&w.deploy);
	return e;
}

static const struct route_param deployment_params[] = {
	{ .name = "limit",
	    .type = PARAM_INT,
	    .min = 1,
	    .max = 100,
	    .fallback = 20,
	    .doc = "Number of items on a page." },
	{ .name = "cursor",
	    .type = PARAM_INT,
	    .min = 1,
	    .max = 9999999999999999,
	    .opaque = 1,
	    .doc = "Cursor: \"next\" of the previous page." },
	{ .name = "projectId",
	    .type = PARAM_INT,
	    .min = ID_MIN,
	    .doc = "Only deployments of this project." },
	{ .name = "pipelineId",
	    .type = PARAM_INT,
	    .min = ID_MIN,
	    .doc = "Only deployments of this pipeline." },
	{ .name = "environmentId",
	    .type = PARAM_INT,
	    .min = ID_MIN,
	    .doc = "Only deployments to this environment." },
	{ .name = "status",
	    .type = PARAM_STR,
	    .values = state_deployments,
	    .named = "DeploymentStatus",
	    .doc = "Only deployments with this status." },
	{ .name = "branch",
	    .type = PARAM_STR,
	    .max = 255,
	    .doc = "Only deployments of this branch." },
	PARAM_END,
};

static const struct route routes[] = {
	{ .method = METHOD_GET,
	    .path = "/api/deployments",
	    .role = ROLE_VIEWER,
	    .query = deployment_params,
	    .handler = api_deployment_list,
	    .operation = "listDeployments",
	    .summary = "List deployments, newest first",
	    .out = &deployment_shape,
	    .list = LIST_KEYS,
	    .status = 200 },
	{ .method = METHOD_POST,
	    .path = "/api/deployments",
	    .role = ROLE_DEPLOYER,
	    .flags = ROUTE_IDEMPOTENT,
	    .in = &deployment_request_shape,
	    .mode = JSON_CREATE,
	    .handler = api_deployment_create,
	    .judge = api_deployment_judge,
	    .operation = "createDeployment",
	    .summary = "Deploy a project",
	    .out = &deployment_shape,
	    .status = 201,
	    .errors = route_conflict },
	SHOW("/api/deployments/{id}", ROLE_VIEWER, api_deployment_show,
	    "getDeployment", "Get a deployment with the results of its steps",
	    deployment_shape),
	{ .method = METHOD_POST,
	    .path = "/api/deployments/{id}/retry",
	    .role = ROLE_DEPLOYER,
	    .flags = ROUTE_IDEMPOTENT,
	    .handler = api_deployment_retry,
	    .operation = "retryDeployment",
	    .summary = "Deploy again with the same pipeline, commit and "
		       "variables",
	    .out = &deployment_shape,
	    .status = 201,
	    .errors = route_conflict },
	{ .method = METHOD_POST,
	    .path = "/api/deployments/{id}/cancel",
	    .role = ROLE_DEPLOYER,
	    .handler = api_deployment_cancel,
	    .operation = "cancelDeployment",
	    .summary = "Cancel a pending or running deployment",
	    .out = &deployment_shape,
	    .status = 200,
	    .errors = route_conflict },
	ROUTE_END,
};

const struct resource deployments_resource = {
	.tag = "deployments",
	.about = "Runs of pipelines: pending, running and finished.",
	.routes = routes,
};
