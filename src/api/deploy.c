/* SPDX-License-Identifier: ISC */
#include "api/deploy.h"

#include "api/environment.h"
#include "api/repository.h"
#include "core/wake.h"

/* Adds a fault; what only it prevents is left to the check that follows. */
static const struct err *
fault(struct req *rq, const char *pointer, const char *detail)
{
	faults_add(&rq->faults, pointer, "%s", detail);
	return NULL;
}

static const struct err *
pipeline_find(struct req *rq, struct arena *a, int64_t project_id,
    struct maybe pipeline_id, int64_t *out)
{
	const struct err *e;
	int64_t steps = 0;

	e = deployment_hold_pipeline(rq->db, a, project_id, pipeline_id, out);
	if (e == NULL)
		e = deployment_steps_count(rq->db, a, *out, &steps);
	if (e == NULL && steps == 0)
		return fault(rq, "/pipelineId",
		    "the pipeline has no steps: give it one first");
	if (e == NULL)
		return NULL;
	if (e->code == ERR_CONFLICT)
		return fault(rq, "/pipelineId",
		    "the project has several pipelines: say which");
	if (e->code != ERR_NOTFOUND)
		return e;
	return fault(rq, "/pipelineId",
	    pipeline_id.set ? "must be a pipeline of this project" :
			      "the project has no pipeline: make one first");
}

const struct err *
deploy_judge(struct req *rq, struct arena *a, const struct deploy *how,
    struct deployment *out)
{
	const struct deployment_request *sent = how->sent;
	const struct err *e;
	struct project p;
	const char *wrong;

	if (sent->branch != NULL &&
	    (wrong = branch_fault(sent->branch)) != NULL)
		(void)fault(rq, "/branch", wrong);
	*out = (struct deployment){ .project_id = sent->project_id };
	if (sent->project_id == 0)
		return NULL;
	e = deployment_hold_project(rq->db, a, sent->project_id);
	if (e != NULL && e->code == ERR_NOTFOUND)
		return fault(rq, "/projectId", "there is no such project");
	if (e != NULL)
		return e;
	if ((e = project_by_id(rq->db, a, sent->project_id, &p)) != NULL)
		return e;
	*out = (struct deployment){
		.project_id = p.id,
		.branch = sent->branch != NULL ? sent->branch :
						 p.default_branch,
		.commit_hash = sent->commit_hash,
		.commit_message = sent->commit_message,
		.trigger = how->trigger,
		.created_by = how->created_by,
	};
	if (!faults_has(&rq->faults, "/pipelineId") &&
	    (e = pipeline_find(rq, a, p.id, sent->pipeline_id,
		 &out->pipeline_id)) != NULL)
		return e;
	return environment_make(rq, a, &p, how, out);
}

void
deploy_wake(const struct req *rq)
{
	if (rq->settings->runner.wake_socket != NULL)
		wake_send(rq->settings->runner.wake_socket);
}
