/* SPDX-License-Identifier: ISC */
#include "deploy/approval.h"

#include <string.h>

#include "core/str.h"
#include "deploy/target.h"
#include "json/json.h"
#include "queue/approval.h"
#include "store/member.h"
#include "store/pipeline.h"

static bool
is_required(const struct environment *env)
{
	return env->id != 0 &&
	    str_eq(env->approval, ENVIRONMENT_APPROVAL_REQUIRED);
}

/* Whether the deployment runs this commit and no other: its full hash is known,
 * or nothing is checked out. */
static bool
is_fixed(const struct deployment *d)
{
	const size_t len = d->commit_hash == NULL ? 0 : strlen(d->commit_hash);

	return len == 40 || len == 64 ||
	    str_eq(d->checkout, PIPELINE_CHECKOUT_NONE);
}

/* Whether no checkout would show that the commit is not on its branch. The
 * server of a push names its head. */
static bool
is_unconfirmed(const struct deployment *d)
{
	return d->commit_hash != NULL && !str_eq(d->trigger, "webhook") &&
	    str_eq(d->checkout, PIPELINE_CHECKOUT_NONE);
}

void
approval_judge(struct deploy *deploy, const struct environment *env,
    const struct deploy_order *order, struct deployment *d)
{
	struct deploy_tip *tip = order->tip;

	if (!is_required(env))
		return;
	d->approval = APPROVAL_REQUIRED;
	if (!order->is_read)
		d->commit_message = NULL;
	if (order->is_elsewhere)
		faults_add(deploy->faults, "/commitHash",
		    "is not a commit of the branch that the approver would be "
		    "shown; name its branch");
	else if (is_unconfirmed(d) && !order->is_confirmed)
		faults_add(deploy->faults, "/commitHash",
		    "cannot be confirmed now, and the pipeline has no checkout "
		    "that compares it with the repository; omit it");
	if (is_fixed(d))
		return;
	if (tip != NULL && d->commit_hash == NULL)
		*tip = (struct deploy_tip){ .is_missing = true,
			.branch = d->branch,
			.tag = d->tag };
	else
		faults_add(deploy->faults, "/commitHash",
		    "%s because the environment %s requires approval, which is "
		    "given for one commit",
		    d->commit_hash == NULL ? "is required" : "must be complete",
		    env->name);
}

const struct err *
approval_repeat(const struct environment *env, struct deployment *d)
{
	d->approval = is_required(env) ? APPROVAL_REQUIRED : NULL;
	if (d->approval == NULL || is_fixed(d))
		return NULL;
	return err_public(ERR_CONFLICT,
	    "The environment %s requires approval, which is given for one "
	    "commit, but the commit of this deployment is not known. Create a "
	    "deployment instead.",
	    env->name);
}

static bool
is_listed(const struct list *approvers, int64_t user_id)
{
	const struct environment_approver *one = approvers->items;
	size_t i;

	for (i = 0; i < approvers->n; i++)
		if (one[i].user_id == user_id)
			return true;
	return false;
}

/* Finds a user; for a guest, only one who shares a project with the guest. */
static const struct err *
user_find(struct deploy *deploy, int64_t guest, int64_t user_id,
    struct user *out)
{
	enum role role = ROLE_VIEWER;
	const struct err *e = NULL;

	if (guest != 0)
		e = member_role(deploy->db, deploy->a, MEMBER_USER, user_id,
		    guest, &role);
	if (e == NULL && role == ROLE_NONE)
		e = err_new(ERR_NOTFOUND, "unseen user");
	return e != NULL ? e : user_by_id(deploy->db, deploy->a, user_id, out);
}

/* Checks one approver that was not listed before. */
static const struct err *
approver_judge(struct deploy *deploy, int64_t project_id, int64_t guest,
    int64_t user_id, const char *at)
{
	enum role role = ROLE_NONE;
	const struct err *e;
	struct user u;

	e = user_find(deploy, guest, user_id, &u);
	if (e != NULL && e->code == ERR_NOTFOUND) {
		faults_add(deploy->faults, at, "unknown user");
		return NULL;
	}
	if (e == NULL)
		e = member_role(deploy->db, deploy->a, MEMBER_PROJECT,
		    project_id, user_id, &role);
	if (e == NULL &&
	    (!str_eq(u.status, "active") ||
		(role_of(u.role) < ROLE_DEPLOYER && role < ROLE_DEPLOYER)))
		faults_add(deploy->faults, at,
		    "must be an active user with the role deployer or a higher "
		    "one");
	return e;
}

const struct err *
approval_judge_users(struct deploy *deploy, const struct environment *env,
    int64_t guest)
{
	const struct environment_approver *one;
	struct list sent, had = { .n = 0 };
	struct environment old;
	const struct err *e;
	size_t i;

	if ((e = json_items_sent(deploy->a, &environment_approver_shape,
		 env->approvers.s, &sent)) != NULL)
		return e;
	if (env->id != 0 &&
	    ((e = environment_by_id(deploy->db, deploy->a, env->id, &old)) !=
		    NULL ||
		(e = json_items(deploy->a, &environment_approver_shape,
		     old.approvers.s, &had)) != NULL))
		return e;
	one = sent.items;
	for (i = 0; e == NULL && i < sent.n; i++) {
		const struct list before = { .items = sent.items, .n = i };
		const char *at = fault_index(deploy->faults, "/approvers", i);

		if (one[i].user_id == 0)
			continue; /* it has a fault already */
		if (is_listed(&before, one[i].user_id))
			faults_add(deploy->faults, at,
			    "is in the list already");
		else if (!is_listed(&had, one[i].user_id))
			e = approver_judge(deploy, env->project_id, guest,
			    one[i].user_id, at);
	}
	return e;
}

/* No user of the service starts the deployments of pushes and schedules. */
static bool
is_started_by(const struct deployment *d, int64_t user_id)
{
	return d->created_by.set && d->created_by.n == user_id &&
	    !str_eq(d->trigger, "webhook") && !str_eq(d->trigger, "schedule");
}

static const struct err *
voter_check(struct arena *a, const struct deployment *d,
    const struct environment *env, const struct approval_vote *vote)
{
	const struct err *e;
	struct list list;

	if (is_started_by(d, vote->who->user_id))
		return err_public(ERR_FORBIDDEN,
		    "You started this deployment, so another user must approve "
		    "or deny it. You can cancel it.");
	if ((e = json_items(a, &environment_approver_shape, env->approvers.s,
		 &list)) != NULL)
		return e;
	if (list.n > 0 ? is_listed(&list, vote->who->user_id) :
			 vote->role >= ROLE_MAINTAINER)
		return NULL;
	return err_public(ERR_FORBIDDEN,
	    "You are not an approver of the environment %s. Ask %s.", env->name,
	    list.n > 0 ? "one of its approvers" : "a maintainer");
}

/* The environment may have changed while the deployment waited. */
static const struct err *
grant_check(struct arena *a, const struct deployment *d,
    const struct environment *env)
{
	const struct err *e;
	bool good;

	if ((e = target_accepts(a, env, d, &good)) != NULL || good)
		return e;
	return err_public(ERR_CONFLICT,
	    "The environment %s no longer accepts the %s of this deployment. "
	    "Deny the deployment, or change the environment.",
	    env->name, d->tag != NULL ? "tag" : "branch");
}

const struct err *
approval_decide(struct deploy *deploy, const struct approval_vote *vote)
{
	const bool is_grant = str_eq(vote->approval, APPROVAL_GRANTED);
	struct environment env;
	struct deployment d;
	const struct err *e;
	enum reason deleted;

	if ((e = deployment_hold_place(deploy->db, vote->deployment_id,
		 &deleted)) != NULL ||
	    (e = deployment_by_id(deploy->db, deploy->a, vote->deployment_id,
		 &d)) != NULL)
		return e;
	if (deleted != REASON_NONE || !str_eq(d.approval, APPROVAL_REQUIRED) ||
	    !str_eq(d.status, state_kinds[STATE_PENDING].name))
		return err_public(ERR_CONFLICT,
		    "The deployment does not wait for approval; its status is "
		    "\"%s\".",
		    d.status);
	if ((e = environment_by_id(deploy->db, deploy->a, d.environment_id.n,
		 &env)) != NULL ||
	    (e = voter_check(deploy->a, &d, &env, vote)) != NULL ||
	    (is_grant && (e = grant_check(deploy->a, &d, &env)) != NULL))
		return e;
	d.approval = vote->approval;
	d.approval_by = (struct maybe){ vote->who->user_id, true };
	d.approval_comment = vote->comment;
	if (!is_grant)
		d.detail = arena_printf(deploy->a, "The user %s denied it.",
		    vote->who->username);
	return approval_save(deploy->db, &d);
}
