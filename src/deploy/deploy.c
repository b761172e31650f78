/* SPDX-License-Identifier: ISC */
#include "deploy/deploy.h"

#include "core/branch.h"
#include "core/str.h"
#include "core/wake.h"
#include "deploy/approval.h"
#include "deploy/locked.h"
#include "deploy/target.h"
#include "deploy/variables.h"
#include "store/env.h"
#include "store/pipeline.h"
#include "store/project.h"

/* Values of env_role. */
#define BY_DEPLOYER "deployer"
#define BY_MAINTAINER "maintainer"

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

/* Whether no checkout would compare the commit with the branch, though the
 * environment accepts only certain branches.  A request can name any commit; the
 * server of a push does not. */
static bool
is_unchecked(const struct deployment *d, const struct environment *env)
{
	return d->commit_hash != NULL && !str_eq(d->trigger, "webhook") &&
	    str_eq(d->checkout, PIPELINE_CHECKOUT_NONE) &&
	    env->branches.s != NULL && !str_eq(env->branches.s, "[]");
}

static void
commit_judge(struct deploy *deploy, const struct deployment *d,
    const struct environment *env)
{
	if (is_unchecked(d, env))
		faults_add(deploy->faults, "/commitHash",
		    "the environment %s accepts only certain branches, and the "
		    "pipeline has no checkout that compares it with the branch; "
		    "omit it",
		    env->name);
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
		e = target_choose(deploy, source->project_id,
		    sent->environment_id, out->branch, &env);
	out->environment_id = (struct maybe){ env.id, env.id != 0 };
	*base = (struct list){ .n = 0 };
	if (e == NULL && env.id != 0) {
		commit_judge(deploy, out, &env);
		approval_judge(deploy, &env, order->tip, out);
	}
	if (e != NULL || (env.id == 0 && !source->variables))
		return e;
	return target_variables(deploy, deploy->a, source->project_id, &env,
	    base);
}

const struct err *
deploy_judge(struct deploy *deploy, const struct deploy_order *order,
    struct deployment *out)
{
	const struct deployment_request *sent = order->sent;
	const struct err *e;
	struct deployment_source source;
	struct project p;
	const char *wrong;
	struct list base;
	bool found;

	*out = (struct deployment){ .project_id = sent->project_id };
	if (sent->branch != NULL &&
	    (wrong = branch_fault(sent->branch)) != NULL)
		faults_add(deploy->faults, "/branch", "%s", wrong);
	e = source_judge(deploy, sent, &source, &found);
	if (e != NULL || !found)
		return e;
	*out = (struct deployment){
		.project_id = source.project_id,
		.pipeline_id = source.pipeline_id.n,
		.timeout_seconds = source.timeout_seconds,
		.checkout = source.checkout,
		.branch = sent->branch != NULL ? sent->branch :
						 source.default_branch,
		.commit_hash = sent->commit_hash,
		.commit_message = sent->commit_message,
		.trigger = order->trigger,
		.created_by = order->created_by,
		.env_role = order->role >= ROLE_MAINTAINER ? BY_MAINTAINER :
							     BY_DEPLOYER,
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
	const struct err *e;
	struct deployment d;

	*out = (struct deployment){ .id = 0 };
	if ((e = deploy_judge(deploy, order, &d)) != NULL)
		return e;
	if ((e = faults_check(deploy->faults)) != NULL)
		return e;
	if (order->tip != NULL && order->tip->is_missing)
		return err_new(ERR_INVALID, "the commit is not known");
	if (str_eq(d.trigger, "manual") &&
	    (e = locked_check(deploy, d.project_id, d.environment_id.n)) !=
		NULL)
		return e;
	e = deployment_insert(deploy->db, deploy->a, &d, out);
	if (e != NULL || str_eq(d.trigger, "manual"))
		return e;
	return locked_wait(deploy, out);
}

/* A retry repeats what was accepted before. So a deployer may repeat the
 * variables that a maintainer set, but not those that a deployer set while the
 * project's rules, or an older version, allowed it. */
static const struct err *
retry_check(struct deploy *deploy, const struct deployment *d,
    const struct list *base, enum role role)
{
	const char *by = d->env_role;
	const struct err *e;
	struct project p;
	const char *extra;

	if (by == NULL && str_eq(d->trigger, "webhook"))
		by = BY_MAINTAINER; /* maintainers write triggers */
	if (role >= ROLE_MAINTAINER || str_eq(by, BY_MAINTAINER))
		return NULL;
	e = project_by_id(deploy->db, deploy->a, d->project_id, &p);
	if (e != NULL || str_eq(p.extra_env, ENV_EXTRA_DEPLOYERS))
		return e;
	if ((e = variables_extra(deploy, &p, base, d->env_vars, &extra)) !=
		NULL ||
	    extra == NULL)
		return e;
	return err_public(ERR_FORBIDDEN,
	    "The deployment sets %.128s, which the project's envPresets do not "
	    "name and which no maintainer set. Ask a maintainer to retry the "
	    "deployment.",
	    extra);
}

/* Checks that the deployment can still go to its environment, marks it if that
 * requires approval, and lists the environment's variables. */
static const struct err *
retry_target(struct deploy *deploy, struct deployment *d, struct list *base)
{
	struct environment env = { .id = 0 };
	const struct err *e = NULL;
	bool good = true;

	if (d->environment_id.set)
		e = environment_by_id(deploy->db, deploy->a,
		    d->environment_id.n, &env);
	if (e != NULL && e->code == ERR_NOTFOUND)
		return err_public(ERR_CONFLICT,
		    "The environment of this deployment was deleted.");
	if (e == NULL && env.id != 0)
		e = target_accepts(deploy->a, &env, d->branch, &good);
	if (e == NULL && !good)
		return err_public(ERR_CONFLICT,
		    "The environment %s no longer accepts the branch of this "
		    "deployment.",
		    env.name);
	if (e == NULL && is_unchecked(d, &env))
		return err_public(ERR_CONFLICT,
		    "The environment %s accepts only certain branches, and the "
		    "deployment has no checkout that compares its commit with "
		    "the branch. Create a deployment without a commit.",
		    env.name);
	if (e != NULL || (e = approval_repeat(&env, d)) != NULL)
		return e;
	return target_variables(deploy, deploy->a, d->project_id, &env, base);
}

const struct err *
deploy_retry(struct deploy *deploy, int64_t id, int64_t created_by,
    enum role role, struct deployment *out)
{
	const struct err *e;
	struct deployment d;
	struct list base;

	*out = (struct deployment){ .id = 0 };
	if ((e = deployment_by_id(deploy->db, deploy->a, id, &d)) != NULL)
		return e;
	e = deployment_hold_project(deploy->db, deploy->a, d.project_id);
	if (e != NULL && e->code == ERR_NOTFOUND)
		return err_public(ERR_CONFLICT,
		    "The project of this deployment was deleted.");
	if (e != NULL || (e = retry_target(deploy, &d, &base)) != NULL ||
	    (e = retry_check(deploy, &d, &base, role)) != NULL ||
	    (e = locked_check(deploy, d.project_id, d.environment_id.n)) !=
		NULL)
		return e;
	d.trigger = "retry";
	d.retry_of = (struct maybe){ .n = d.id, .set = true };
	d.created_by = (struct maybe){ .n = created_by, .set = true };
	return deployment_repeat(deploy->db, deploy->a, &d, out);
}

void
deploy_wake(const struct deploy *deploy)
{
	if (deploy->settings->runner.wake_socket != NULL)
		wake_send(deploy->settings->runner.wake_socket);
}
