/* SPDX-License-Identifier: ISC */
#include "deploy/repeat.h"

#include "core/str.h"
#include "deploy/approval.h"
#include "deploy/locked.h"
#include "deploy/target.h"
#include "deploy/variables.h"
#include "json/json.h"
#include "queue/waiting.h"
#include "store/env.h"
#include "store/project.h"

/* A retry repeats what was accepted before. So a deployer may repeat the
 * variables that a maintainer set, but not those that a deployer set while the
 * project's rules, or an older version, allowed it. Where the name is a secret
 * of the environment now, the deployment gets that secret; then it has
 * secret_vars. */
static const struct err *
variables_check(struct deploy *deploy, struct deployment *d,
    const struct list *base, enum role role)
{
	const char *const maintainer = variables_role(ROLE_MAINTAINER);
	const char *by = d->env_role;
	const struct err *e;
	struct project p;
	const char *fault = NULL;

	if (by == NULL && str_eq(d->trigger, "webhook"))
		by = maintainer; /* maintainers write triggers */
	if (role >= ROLE_MAINTAINER || str_eq(by, maintainer))
		return NULL;
	e = project_by_id(deploy->db, deploy->a, d->project_id, &p);
	if (e == NULL)
		e = variables_repeat(deploy, &p, base, d, &fault);
	if (e != NULL || fault == NULL)
		return e;
	return err_public(ERR_FORBIDDEN,
	    "The deployment sets %s, and no maintainer set it. Ask a "
	    "maintainer to repeat the deployment.",
	    fault);
}

/* Reads the deployment and locks its project. */
static const struct err *
source_hold(struct deploy *deploy, int64_t id, struct deployment *out)
{
	const struct err *e;

	if ((e = deployment_by_id(deploy->db, deploy->a, id, out)) != NULL)
		return e;
	e = deployment_hold_project(deploy->db, deploy->a, out->project_id);
	if (e != NULL && e->code == ERR_NOTFOUND)
		return err_public(ERR_CONFLICT,
		    "The project of this deployment was deleted.");
	/* read again: it could be deleted before the project was locked */
	return e != NULL ? e : deployment_by_id(deploy->db, deploy->a, id, out);
}

/* Turns the deployment into a copy of itself. */
static void
copy_begin(struct deployment *d, const char *trigger,
    const struct repeat_by *by)
{
	d->trigger = trigger;
	d->retry_of = (struct maybe){ .n = d->id, .set = true };
	d->created_by = (struct maybe){ .n = by->user_id, .set = true };
}

/* Inserts the copy, in one of the ways that the store has. */
static const struct err *
copy_insert(struct deploy *deploy,
    const struct err *(*insert)(struct db *, struct arena *,
	const struct deployment *, struct deployment *),
    const struct deployment *d, struct deployment *out)
{
	struct waiting_queue queue;
	const struct err *e;

	if ((e = waiting_look(deploy->db, deploy->a, d, &queue)) != NULL ||
	    (e = insert(deploy->db, deploy->a, d, out)) != NULL)
		return e;
	waiting_begin(deploy->a, &queue, out);
	return NULL;
}

/* Inserts a copy with the variables of the original, or with its own. */
static const struct err *
copy_repeat(struct deploy *deploy, const struct deployment *d,
    struct deployment *out)
{
	return copy_insert(deploy,
	    d->secret_vars.s != NULL ? deployment_repeat_with :
				       deployment_repeat,
	    d, out);
}

static const char *
ref_kind(const struct deployment *d)
{
	return d->tag != NULL ? "tag" : "branch";
}

/* Rejects a commit that no checkout would compare with what the environment
 * accepts. */
static const struct err *
commit_check(const struct environment *env, const struct deployment *d)
{
	if (!target_is_unchecked(env, d))
		return NULL;
	return err_public(ERR_CONFLICT,
	    "The environment %s accepts only certain %s, and the deployment "
	    "has no checkout that compares its commit with the %s. Create a "
	    "deployment without a commit.",
	    env->name, d->tag != NULL ? "tags" : "branches", ref_kind(d));
}

/* Whether the environment still accepts the branch or tag and the commit. */
static const struct err *
place_check(struct deploy *deploy, const struct environment *env,
    const struct deployment *d)
{
	const struct err *e;
	bool good;

	if ((e = target_accepts(deploy->a, env, d, &good)) != NULL)
		return e;
	if (!good)
		return err_public(ERR_CONFLICT,
		    "The environment %s no longer accepts the %s of this "
		    "deployment.",
		    env->name, ref_kind(d));
	return commit_check(env, d);
}

/* Without an environment, the copy would bypass the approval, the locks and the
 * branches of the environments that the project has now. */
static const struct err *
nowhere_check(struct deploy *deploy, const struct deployment *d)
{
	const struct err *e;
	int64_t id;

	e = environment_only(deploy->db, deploy->a, d->project_id, &id);
	if (e == NULL ? id == 0 : e->code != ERR_CONFLICT)
		return e;
	return err_public(ERR_CONFLICT,
	    "The deployment has no environment, but its project has "
	    "environments now. Create a deployment instead.");
}

/* Checks that the deployment can still go to its environment, marks it if that
 * requires approval, and lists the environment's variables. */
static const struct err *
retry_target(struct deploy *deploy, struct deployment *d, struct list *base)
{
	struct environment env = { .id = 0 };
	const struct err *e;

	if (!d->environment_id.set)
		e = nowhere_check(deploy, d);
	else
		e = environment_by_id(deploy->db, deploy->a,
		    d->environment_id.n, &env);
	if (e != NULL && e->code == ERR_NOTFOUND)
		return err_public(ERR_CONFLICT,
		    "The environment of this deployment was deleted.");
	if (e == NULL && env.id != 0)
		e = place_check(deploy, &env, d);
	if (e != NULL || (e = approval_repeat(&env, d)) != NULL)
		return e;
	return target_variables(deploy, deploy->a, d->project_id, &env, base);
}

const struct err *
repeat_retry(struct deploy *deploy, int64_t id, const struct repeat_by *by,
    struct deployment *out)
{
	const struct err *e;
	struct deployment d;
	struct list base;

	*out = (struct deployment){ .id = 0 };
	if ((e = source_hold(deploy, id, &d)) != NULL ||
	    (e = retry_target(deploy, &d, &base)) != NULL ||
	    (e = variables_check(deploy, &d, &base, by->role)) != NULL ||
	    (e = locked_check(deploy, d.project_id, d.environment_id.n)) !=
		NULL)
		return e;
	copy_begin(&d, "retry", by);
	return copy_repeat(deploy, &d, out);
}

/* Inserts a rollback that repeats the deployment. */
static const struct err *
rollback_insert(struct deploy *deploy, struct deployment *d,
    const struct environment *env, const char *reason,
    const struct repeat_by *by, struct deployment *out)
{
	const struct err *e;
	struct list base;

	e = target_variables(deploy, deploy->a, d->project_id, env, &base);
	if (e != NULL ||
	    (e = variables_check(deploy, d, &base, by->role)) != NULL)
		return e;
	copy_begin(d, DEPLOYMENT_ROLLBACK, by);
	d->approval = NULL;
	d->rollback_reason = reason;
	return copy_repeat(deploy, d, out);
}

/* Locks the environment and its project, and reads what a rollback can
 * repeat. */
static const struct err *
targets_hold(struct deploy *deploy, int64_t environment_id,
    struct environment *env, struct repeat_targets *out)
{
	const struct err *e;

	if ((e = environment_hold_project(deploy->db, deploy->a,
		 environment_id)) != NULL ||
	    (e = environment_lock(deploy->db, deploy->a, environment_id,
		 env)) != NULL ||
	    (e = repeat_targets(deploy->db, deploy->a, environment_id, out)) !=
		NULL)
		return e;
	if (out->pending != 0)
		return err_public(ERR_CONFLICT,
		    "The rollback %lld of the environment %s is pending "
		    "already.",
		    (long long)out->pending, env->name);
	return NULL;
}

static const struct err *
is_dry_run(struct arena *a, const struct deployment *d, bool *out)
{
	const struct pair *pair;
	const struct err *e;
	struct map vars;
	size_t i;

	*out = false;
	if ((e = json_map(a, d->env_vars.s, &vars)) != NULL)
		return e;
	pair = vars.items;
	for (i = 0; i < vars.n; i++)
		if (str_eq(pair[i].key, ENV_DRY_RUN))
			*out = str_eq(pair[i].value, ENV_DRY_RUN_YES);
	return NULL;
}

/* Reads the deployment that a request names; adds a fault if it cannot be
 * repeated in the environment. */
static const struct err *
rollback_source(struct deploy *deploy, int64_t id,
    const struct environment *env, struct deployment *out)
{
	const char *const at = "/deploymentId";
	const struct err *e;
	bool dry = false;

	e = deployment_by_id(deploy->db, deploy->a, id, out);
	if (e != NULL && e->code != ERR_NOTFOUND)
		return e;
	if (e != NULL || out->environment_id.n != env->id ||
	    !str_eq(out->status, state_kinds[STATE_SUCCESS].name))
		faults_add(deploy->faults, at,
		    "must be a successful deployment to this environment");
	else if ((e = is_dry_run(deploy->a, out, &dry)) != NULL)
		return e;
	if (dry)
		faults_add(deploy->faults, at,
		    "was a dry run (" ENV_DRY_RUN " is " ENV_DRY_RUN_YES
		    "), so its repetition would change nothing");
	return faults_check(deploy->faults);
}

const struct err *
repeat_rollback(struct deploy *deploy, int64_t environment_id,
    const struct rollback_request *sent, const struct repeat_by *by,
    struct deployment *out)
{
	struct repeat_targets targets;
	struct environment env;
	struct deployment d;
	const struct err *e;
	int64_t id;

	*out = (struct deployment){ .id = 0 };
	if ((e = targets_hold(deploy, environment_id, &env, &targets)) != NULL)
		return e;
	if (!sent->deployment_id.set && targets.running != 0)
		return err_public(ERR_CONFLICT,
		    "The rollback %lld of the environment %s is running. Wait "
		    "for it, or name the deployment to roll back to.",
		    (long long)targets.running, env.name);
	id = sent->deployment_id.set ? sent->deployment_id.n : targets.before;
	if (id == 0)
		return err_public(ERR_CONFLICT,
		    "The environment %s has no earlier successful deployment.",
		    env.name);
	if ((e = rollback_source(deploy, id, &env, &d)) != NULL)
		return e;
	/* its copy repeats the same, and may be newer than what it repeats */
	if (str_eq(d.trigger, DEPLOYMENT_ROLLBACK) &&
	    (e = deployment_by_id(deploy->db, deploy->a, d.retry_of.n, &d)) !=
		NULL)
		return e;
	return rollback_insert(deploy, &d, &env, sent->reason, by, out);
}

const struct err *
repeat_undo(struct deploy *deploy, int64_t id, const struct repeat_by *by,
    struct deployment *out)
{
	struct repeat_targets targets;
	struct environment env;
	struct deployment d, live;
	const struct err *e;

	*out = (struct deployment){ .id = 0 };
	if ((e = deployment_by_id(deploy->db, deploy->a, id, &d)) != NULL)
		return e;
	if (str_eq(d.status, state_kinds[STATE_PENDING].name))
		return err_public(ERR_CONFLICT,
		    "The deployment has not started, so there is nothing to "
		    "roll back. Cancel it without \"then\".");
	if (!str_eq(d.status, state_kinds[STATE_RUNNING].name))
		return err_public(ERR_CONFLICT,
		    "The deployment has ended already, with status \"%s\". To "
		    "go back to an earlier one, roll back its environment.",
		    d.status);
	if (!d.environment_id.set)
		return err_public(ERR_CONFLICT,
		    "The deployment has no environment, so it cannot be rolled "
		    "back. Cancel it without \"then\".");
	if ((e = targets_hold(deploy, d.environment_id.n, &env, &targets)) !=
	    NULL)
		return e;
	if (targets.live == 0)
		return err_public(ERR_CONFLICT,
		    "Nothing is live in the environment %s, so it cannot be "
		    "rolled back. Cancel the deployment without \"then\".",
		    env.name);
	if ((e = deployment_by_id(deploy->db, deploy->a, targets.live,
		 &live)) != NULL)
		return e;
	return rollback_insert(deploy, &live, &env, NULL, by, out);
}

/* Chooses the environment of a promotion, and adds faults; id 0 in `out` if the
 * project has no such environment. */
static const struct err *
promotion_target(struct deploy *deploy, const struct promotion_request *sent,
    const struct deployment *d, struct environment *out)
{
	const struct err *e;
	bool good;

	*out = (struct environment){ .id = 0 };
	if (sent->environment_id == 0) /* it has a fault already */
		return NULL;
	e = target_find(deploy, d->project_id,
	    (struct maybe){ sent->environment_id, true }, out);
	if (e != NULL || out->id == 0)
		return e;
	if (d->environment_id.set && d->environment_id.n == out->id)
		faults_add(deploy->faults, "/environmentId",
		    "is the environment of the deployment; retry it instead");
	if ((e = target_accepts(deploy->a, out, d, &good)) != NULL)
		return e;
	if (good)
		return commit_check(out, d);
	faults_add(deploy->faults, "/environmentId",
	    "does not accept the %s of the deployment", ref_kind(d));
	return NULL;
}

const struct err *
repeat_promotion_judge(struct deploy *deploy, int64_t id,
    const struct promotion_request *sent, const struct repeat_by *by,
    struct deployment *out)
{
	const struct deployment_request vars = { .env_vars = sent->env_vars };
	const struct deploy_order order = { .sent = &vars, .role = by->role };
	struct environment env;
	struct project p;
	struct list base;
	const struct err *e;

	if ((e = source_hold(deploy, id, out)) != NULL)
		return e;
	if (!str_eq(out->status, state_kinds[STATE_SUCCESS].name))
		return err_public(ERR_CONFLICT,
		    "Only a successful deployment can be promoted; the status "
		    "of this one is \"%s\".",
		    out->status);
	if ((e = promotion_target(deploy, sent, out, &env)) != NULL ||
	    (e = approval_repeat(&env, out)) != NULL ||
	    (e = project_by_id(deploy->db, deploy->a, out->project_id, &p)) !=
		NULL ||
	    (e = target_variables(deploy, deploy->a, p.id, &env, &base)) !=
		NULL)
		return e;
	copy_begin(out, DEPLOYMENT_PROMOTION, by);
	out->environment_id = (struct maybe){ env.id, true };
	out->env_role = variables_role(by->role);
	return variables_make(deploy, &p, &base, &order, out);
}

const struct err *
repeat_promotion(struct deploy *deploy, int64_t id,
    const struct promotion_request *sent, const struct repeat_by *by,
    struct deployment *out)
{
	struct deployment d;
	const struct err *e;

	*out = (struct deployment){ .id = 0 };
	if ((e = repeat_promotion_judge(deploy, id, sent, by, &d)) != NULL ||
	    (e = faults_check(deploy->faults)) != NULL ||
	    (e = locked_check(deploy, d.project_id, d.environment_id.n)) !=
		NULL)
		return e;
	return copy_insert(deploy, deployment_repeat_with, &d, out);
}
