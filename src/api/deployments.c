/* SPDX-License-Identifier: ISC */
#include "api/handlers.h"
#include "api/replay.h"
#include "deploy/deploy.h"

/* What a transaction works on. Its memory is given back before it is run
 * again, the request's is not. */
struct work {
	struct req *rq;
	struct arena *a;
	struct deploy deploy;
	struct idempotency key;
	bool replayed;
	int64_t id;
};

const struct err *
api_deployment_list(struct req *rq)
{
	const struct deployment_filter filter = {
		.project_id = req_int(rq, "projectId"),
		.pipeline_id = req_int(rq, "pipelineId"),
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

/* The answer with one deployment as it is now. */
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

const struct err *
api_deployment_show(struct req *rq)
{
	return deployment_answer(rq, rq->a, rq->id[0]);
}

/* The user's own request. */
static struct deploy_order
request_order(const struct req *rq, const struct deployment_request *sent)
{
	return (struct deploy_order){ .sent = sent,
		.trigger = "manual",
		.created_by = { .n = rq->who.user_id, .set = true },
		.role = rq->role };
}

const struct err *
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

/* What both ways to a new deployment begin and end with. */
static const struct err *
work_begin(struct work *w)
{
	arena_clear(w->a);
	faults_init(&w->rq->faults, w->rq->a);
	w->id = 0;
	return replay_find(w->rq, &w->key, &w->replayed);
}

static const struct err *
work_end(struct work *w)
{
	const struct err *e;

	if ((e = deployment_answer(w->rq, w->a, w->id)) != NULL)
		return e;
	return replay_save(w->rq, &w->key, w->id);
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
	if ((e = deploy_create(&w->deploy, &order, &w->id)) != NULL)
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
	    w->rq->role, &w->id);
	if (e != NULL)
		return e;
	return work_end(w);
}

/* A request that was refused may be the second of two with one key: while it
 * waited for the first, something else may have changed, too. */
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
	return err_tell(ERR_CONFLICT,
	    "A request with this Idempotency-Key is being served: ask again in "
	    "a moment.");
}

/* Runs the body; of several with the same key, sent at once, one wins and the
 * others get its answer. */
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

const struct err *
api_deployment_create(struct req *rq)
{
	return deployment_make(rq, create_body);
}

const struct err *
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

const struct err *
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
