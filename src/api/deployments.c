/* SPDX-License-Identifier: ISC */
#include "api/environment.h"
#include "api/handlers.h"
#include "api/replay.h"
#include "api/repository.h"
#include "core/str.h"
#include "core/wake.h"

#define WORK_MAX ((size_t)5 << 20)

/* What a transaction works on. Its memory is given back before it is run
 * again, the request's is not. */
struct work {
	struct req *rq;
	struct arena *a;
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

/* Adds a fault; what only it prevents is left to the check that follows. */
static const struct err *
fault(struct req *rq, const char *pointer, const char *detail)
{
	faults_add(&rq->faults, pointer, "%s", detail);
	return NULL;
}

static const struct err *
pipeline_find(struct work *w, int64_t project_id, struct maybe pipeline_id,
    int64_t *out)
{
	const struct err *e;
	int64_t steps = 0;

	e = deployment_hold_pipeline(w->rq->db, w->a, project_id, pipeline_id,
	    out);
	if (e == NULL)
		e = deployment_steps_count(w->rq->db, w->a, *out, &steps);
	if (e == NULL && steps == 0)
		return fault(w->rq, "/pipelineId",
		    "the pipeline has no steps: give it one first");
	if (e == NULL)
		return NULL;
	if (e->code == ERR_CONFLICT)
		return fault(w->rq, "/pipelineId",
		    "the project has several pipelines: say which");
	if (e->code != ERR_NOTFOUND)
		return e;
	return fault(w->rq, "/pipelineId",
	    pipeline_id.set ? "must be a pipeline of this project" :
			      "the project has no pipeline: make one first");
}

/* The deployment that is asked for, as far as it can be had; else faults. What
 * could not be read is not judged. */
static const struct err *
request_judge(struct work *w, const struct deployment_request *sent,
    struct deployment *out)
{
	struct req *rq = w->rq;
	const struct err *e;
	struct project p;
	const char *wrong;

	if (sent->branch != NULL &&
	    (wrong = branch_fault(sent->branch)) != NULL)
		(void)fault(rq, "/branch", wrong);
	*out = (struct deployment){ .project_id = sent->project_id };
	if (sent->project_id == 0)
		return NULL;
	e = deployment_hold_project(rq->db, w->a, sent->project_id);
	if (e != NULL && e->code == ERR_NOTFOUND)
		return fault(rq, "/projectId", "there is no such project");
	if (e != NULL)
		return e;
	if ((e = project_by_id(rq->db, w->a, sent->project_id, &p)) != NULL)
		return e;
	*out = (struct deployment){
		.project_id = p.id,
		.branch = sent->branch != NULL ? sent->branch :
						 p.default_branch,
		.commit_hash = sent->commit_hash,
		.commit_message = sent->commit_message,
		.trigger = "manual",
		.created_by = { .n = rq->who.user_id, .set = true },
	};
	if (!faults_has(&rq->faults, "/pipelineId") &&
	    (e = pipeline_find(w, p.id, sent->pipeline_id,
		 &out->pipeline_id)) != NULL)
		return e;
	return environment_make(rq, w->a, &p, sent->env_vars, out);
}

const struct err *
api_deployment_judge(struct req *rq, const void *item)
{
	struct work w = { .rq = rq, .a = arena_open(WORK_MAX) };
	struct deployment d;
	const struct err *e;

	e = request_judge(&w, item, &d);
	arena_close(w.a);
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
	struct deployment d;
	const struct err *e;

	if ((e = work_begin(w)) != NULL || w->replayed)
		return e;
	if ((e = request_judge(w, w->rq->body, &d)) != NULL)
		return e;
	if ((e = faults_check(&w->rq->faults)) != NULL)
		return e;
	if ((e = deployment_insert(db, &d, &w->id)) != NULL)
		return e;
	return work_end(w);
}

static const struct err *
retry_body(struct db *db, void *context)
{
	struct work *w = context;
	struct req *rq = w->rq;
	struct deployment d;
	const struct err *e;

	if ((e = work_begin(w)) != NULL || w->replayed)
		return e;
	if ((e = deployment_by_id(db, w->a, rq->id[0], &d)) != NULL)
		return e;
	e = deployment_hold_project(db, w->a, d.project_id);
	if (e != NULL && e->code == ERR_NOTFOUND)
		return err_tell(ERR_CONFLICT,
		    "The project of this deployment was deleted.");
	if (e != NULL)
		return e;
	e = deployment_repeat(db, d.id, rq->who.user_id, &w->id);
	if (e != NULL)
		return e;
	return work_end(w);
}

static void
runner_wake(const struct req *rq)
{
	if (rq->settings->runner.wake_socket != NULL)
		wake_send(rq->settings->runner.wake_socket);
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
	w.a = arena_open(WORK_MAX);
	e = db_transaction(rq->db, body, &w);
	if (e != NULL && e->sys == DB_DUPLICATE &&
	    w.key.idempotency_key != NULL) {
		e = replay_find(rq, &w.key, &w.replayed);
		if (e == NULL && !w.replayed)
			e = err_tell(ERR_CONFLICT,
			    "A request with this Idempotency-Key is being "
			    "served: ask again in a moment.");
	}
	arena_close(w.a);
	if (e != NULL)
		return e;
	answer_location(rq, "/api/deployments/%lld",
	    (long long)w.key.deployment_id);
	if (!w.replayed)
		runner_wake(rq);
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
	struct work w = { .rq = rq, .a = arena_open(WORK_MAX) };
	const struct err *e;

	e = db_transaction(rq->db, cancel_body, &w);
	arena_close(w.a);
	if (e == NULL)
		runner_wake(rq);
	return e;
}
