/* SPDX-License-Identifier: ISC */
#include "deploy/deploy.h"

#include "core/branch.h"
#include "core/str.h"
#include "core/wake.h"
#include "deploy/approval.h"
#include "deploy/locked.h"
#include "deploy/target.h"
#include "deploy/variables.h"
#include "queue/waiting.h"
#include "store/env.h"
#include "store/pipeline.h"
#include "store/project.h"

static void
names_judge(struct faults *faults, const struct deployment_request *sent)
{
	const char *wrong;

	if (sent->branch != NULL &&
	    (wrong = branch_fault(sent->branch)) != NULL)
		faults_add(faults, "/branch", "%s", wrong);
	if (sent->tag != NULL && sent->branch != NULL)
		faults_add(faults, "/tag", "cannot be combined with branch");
	else if (sent->tag != NULL && (wrong = branch_fault(sent->tag)) != NULL)
		faults_add(faults, "/tag", "%s", wrong);
}

/* Why the pipeline cannot be deployed; NULL if it can. */
static const char *
pipeline_fault(const struct deployment_source *source, bool named)
{
	if (source->pipelines > 1)
		return "is required because the project has several pipelines";
	if (source->pipelines == 1)
		return source->steps ?
		    NULL :
		    "the pipeline has no steps; add a step first";
	return named ? "must be a pipeline of this project" :
		       "the project has no pipeline; create one first";
}

/* Locks and reads what the order deploys. If there is no such project, adds a
 * fault and sets `found` to false. */
static const struct err *
source_judge(struct deploy *deploy, const struct deployment_request *sent,
    struct deployment_source *out, bool *found)
{
	const struct err *e;
	const char *fault;

	*found = false;
	if (sent->project_id == 0) /* it has a fault already */
		return NULL;
	e = deployment_source(deploy->db, deploy->a, sent->project_id,
	    sent->pipeline_id, out);
	if (e != NULL && e->code == ERR_NOTFOUND) {
		faults_add(deploy->faults, "/projectId", "unknown project");
		return NULL;
	}
	if (e != NULL)
		return e;
	*found = true;
	if (!faults_has(deploy->faults, "/pipelineId") &&
	    (fault = pipeline_fault(out, sent->pipeline_id.set)) != NULL)
		faults_add(deploy->faults, "/pipelineId", "%s", fault);
	return NULL;
}

static void
commit_judge(struct deploy *deploy, const struct deployment *d,
    const struct environment *env)
{
	if (target_is_unchecked(env, d))
		faults_add(deploy->faults, "/commitHash",
		    "the environment %s accepts only certain %s, and the "
		    "pipeline has no checkout that compares the commit with "
		    "the %s; omit it",
		    env->name, d->tag != NULL ? "tags" : "branches",
		    d->tag != NULL ? "tag" : "branch");
}

/* Fills in the environment of the deployment, and lists its variables. */
static const struct err *
target_fill(struct deploy *deploy, const struct deploy_order *order,
    const struct deployment_source *source, struct deployment *out,
    struct list *base)
{
	const struct deployment_request *sent = order->sent;
	struct environment env = { .id = 0 };
	const struct err *e = NULL;

	if (source->environments || sent->environment_id.set)
		e = target_choose(deploy, out, sent->environment_id, &env);
	out->environment_id = (struct maybe){ env.id, env.id != 0 };
	*base = (struct list){ .n = 0 };
	if (e == NULL && env.id != 0) {
		commit_judge(deploy, out, &env);
		approval_judge(deploy, &env, order, out);
	}
	if (e != NULL || (env.id == 0 && !source->variables))
		return e;
	return target_variables(deploy, deploy->a, source->project_id, &env,
	    base);
}

/* How the row says what becomes of a push. */
static const char *
moved_name(const struct deploy_order *order, const char *checkout)
{
	if (order->moved == DEPLOY_MOVED_FOLLOW &&
	    !str_eq(checkout, PIPELINE_CHECKOUT_NONE))
		return DEPLOYMENT_MOVED_FOLLOW;
	return order->moved == DEPLOY_MOVED_CANCEL ? DEPLOYMENT_MOVED_CANCEL :
						     DEPLOYMENT_MOVED_IGNORE;
}

const struct err *
deploy_judge(struct deploy *deploy, const struct deploy_order *order,
    struct deployment *out)
{
	const struct deployment_request *sent = order->sent;
	const struct err *e;
	struct deployment_source source;
	struct project p;
	struct list base;
	bool found;

	*out = (struct deployment){ .project_id = sent->project_id };
	names_judge(deploy->faults, sent);
	e = source_judge(deploy, sent, &source, &found);
	if (e != NULL || !found)
		return e;
	*out = (struct deployment){
		.project_id = source.project_id,
		.pipeline_id = source.pipeline_id.n,
		.timeout_seconds = source.timeout_seconds,
		.checkout = source.checkout,
		.branch = sent->branch != NULL || sent->tag != NULL ?
		    sent->branch :
		    source.default_branch,
		.tag = sent->tag,
		.commit_hash = sent->commit_hash,
		.commit_message = sent->commit_message,
		.commit_read = order->is_read,
		.trigger = order->trigger,
		.created_by = order->created_by,
		.read_by = order->read_by,
		.env_role = variables_role(order->role),
		.trigger_key = order->trigger_key,
		.when_moved = moved_name(order, source.checkout),
	};
	p = (struct project){ .id = source.project_id,
		.env_presets = source.env_presets,
		.extra_env = source.extra_env };
	e = target_fill(deploy, order, &source, out, &base);
	return e != NULL ? e : variables_make(deploy, &p, &base, order, out);
}

const struct err *
deploy_create(struct deploy *deploy, const struct deploy_order *order,
    struct deployment *out)
{
	struct waiting_queue queue;
	const struct err *e;
	struct deployment d;
	bool manual;

	*out = (struct deployment){ .id = 0 };
	if ((e = deploy_judge(deploy, order, &d)) != NULL)
		return e;
	if ((e = faults_check(deploy->faults)) != NULL)
		return e;
	if (order->tip != NULL && order->tip->is_missing)
		return err_new(ERR_INVALID, "the commit is not known");
	if ((e = waiting_look(deploy->db, deploy->a, &d, &queue)) != NULL)
		return e;
	manual = str_eq(d.trigger, "manual");
	if (manual && queue.locks &&
	    (e = locked_check(deploy, d.project_id, d.environment_id.n)) !=
		NULL)
		return e;
	e = deployment_insert(deploy->db, deploy->a, &d, out);
	if (e != NULL)
		return e;
	waiting_begin(deploy->a, &queue, out);
	return manual || !queue.locks ? NULL :
					locked_wait(deploy, out, order->before);
}

void
deploy_wake(const struct deploy *deploy)
{
	if (deploy->settings->runner.wake_socket != NULL)
		wake_send(deploy->settings->runner.wake_socket);
}
