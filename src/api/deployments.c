/* SPDX-License-Identifier: ISC */
#include <string.h>

#include "api/git_read.h"
#include "api/resources.h"
#include "api/rules.h"
#include "core/str.h"
#include "deploy/approval.h"
#include "deploy/deploy.h"
#include "deploy/repeat.h"
#include "queue/approval.h"
#include "web/audited.h"
#include "web/replay.h"

#define ROLLBACK "rollbackEnvironment"
#define MESSAGE_MAX 4000 /* characters that are stored of a commit's */

/* What a transaction works on. Its own arena is cleared before each retry; the
 * request's is not. */
struct work {
	struct req *rq;
	struct arena *a;
	struct deploy deploy;
	struct idempotency key;
	bool replayed;
	struct repeat_by by;
	const char *decision; /* one of deployment_approvals */
	struct deploy_tip tip;
	bool is_confirmed; /* these as in the order */
	bool is_elsewhere;
	bool is_read;
	struct deployment made;
};

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

/* The order that the user's request describes. */
static struct deploy_order
request_order(const struct req *rq, const struct deployment_request *sent,
    struct deploy_tip *tip)
{
	return (struct deploy_order){ .sent = sent,
		.tip = tip,
		.trigger = "manual",
		.created_by = { .n = rq->who.user_id, .set = true },
		.role = rq->role };
}

/* The user who repeats a deployment. */
static struct repeat_by
request_by(const struct req *rq)
{
	return (
	    struct repeat_by){ .user_id = rq->who.user_id, .role = rq->role };
}

static const struct err *
api_deployment_judge(struct req *rq, const void *item)
{
	struct arena *a = arena_open(DEPLOY_WORK);
	struct deploy_tip tip;
	const struct deploy_order order = request_order(rq, item, &tip);
	struct deploy deploy = rules_context(rq, a);
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
	faults_again(&w->rq->faults, w->rq->a);
	w->tip = (struct deploy_tip){ .is_missing = false };
	return replay_find(w->rq, &w->key, &w->replayed);
}

static const struct err *
work_end(struct work *w)
{
	const struct err *e;

	e = audited_change(w->rq, AUDIT_OF_DEPLOYMENT, w->made.id,
	    w->made.project_id);
	if (e != NULL)
		return e;
	answer_item(w->rq, &deployment_shape, &w->made, 0);
	return replay_save(w->rq, &w->key, w->made.id);
}

static const struct err *
create_body(struct db *db, void *context)
{
	struct work *w = context;
	struct deploy_order order = request_order(w->rq, w->rq->body, &w->tip);
	const struct err *e;

	(void)db;
	order.is_confirmed = w->is_confirmed;
	order.is_read = w->is_read;
	order.is_elsewhere = w->is_elsewhere;
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
	e = repeat_retry(&w->deploy, w->rq->id[0], &w->by, &w->made);
	if (e != NULL)
		return e;
	return work_end(w);
}

static const struct err *
rollback_body(struct db *db, void *context)
{
	struct work *w = context;
	const struct err *e;

	(void)db;
	if ((e = work_begin(w)) != NULL || w->replayed)
		return e;
	e = repeat_rollback(&w->deploy, w->rq->id[0], w->rq->body, &w->by,
	    &w->made);
	if (e != NULL)
		return e;
	return work_end(w);
}

static const struct err *
promotion_body(struct db *db, void *context)
{
	struct work *w = context;
	const struct err *e;

	(void)db;
	if ((e = work_begin(w)) != NULL || w->replayed)
		return e;
	e = repeat_promotion(&w->deploy, w->rq->id[0], w->rq->body, &w->by,
	    &w->made);
	if (e != NULL)
		return e;
	return work_end(w);
}

static const struct err *
api_promotion_judge(struct req *rq, const void *item)
{
	struct arena *a = arena_open(DEPLOY_WORK);
	const struct repeat_by by = request_by(rq);
	struct deploy deploy = rules_context(rq, a);
	struct deployment d;
	const struct err *e;

	e = repeat_promotion_judge(&deploy, rq->id[0], item, &by, &d);
	arena_close(a);
	return e;
}

/* A rejected request may be the second of two with the same key: while it
 * waited for the first, the conditions may have changed. Then it returns the
 * first one's response. */
static const struct err *
first_answer(struct work *w, const struct err *rejected)
{
	const struct err *e;

	if (rejected->sys != DB_DUPLICATE &&
	    err_kinds[rejected->code].http >= 500)
		return rejected;
	e = replay_find(w->rq, &w->key, &w->replayed);
	if (e != NULL || w->replayed)
		return e;
	if (rejected->sys != DB_DUPLICATE)
		return rejected;
	return err_public(ERR_CONFLICT,
	    "Another request with this Idempotency-Key is in progress. Try "
	    "again in a moment.");
}

/* Reads the commit of the tag, or the newest of the branch, that is deployed,
 * so that the commit that is approved is the one that runs. */
static const struct err *
tip_read(struct req *rq, int64_t project_id, const struct git_ref *ref,
    struct git_commit *out)
{
	const struct err *e;

	e = git_tip(rq, project_id, ref, out);
	if (e == NULL || e->code == ERR_RATE)
		return e;
	if (e->code == ERR_CONFIG && rq->access->forge == NULL &&
	    !str_eq(rq->settings->gitserver.type, "git")) {
		faults_add(&rq->faults, "/commitHash",
		    "is required: the environment requires approval, which is "
		    "given for one commit, and no Git server is configured to "
		    "find the newest one");
		return faults_check(&rq->faults);
	}
	if (e->code == ERR_NOTFOUND) {
		faults_add(&rq->faults, ref->tag != NULL ? "/tag" : "/branch",
		    "has no commit that can be approved: %.300s", e->detail);
		return faults_check(&rq->faults);
	}
	return err_public(e->code,
	    "The environment requires approval, so the commit must be known "
	    "now. %.300s To deploy anyway, send commitHash.",
	    e->detail[0] != '\0' ?
		e->detail :
		"The commit could not be read from the Git server.");
}

static const char *
text_keep(struct arena *a, const char *text)
{
	return text == NULL ? NULL : arena_strdup(a, text);
}

/* The message of a commit as the runner would store it. */
static const char *
message_keep(struct arena *a, const char *message)
{
	return message == NULL ?
	    NULL :
	    str_clip(a, str_chomp(a, message), MESSAGE_MAX);
}

/* Runs the body, again with the commit of the branch or tag if approval requires
 * one. */
static const struct err *
body_run(struct work *w, db_body *body)
{
	struct deployment_request *sent = w->rq->body;
	struct git_commit tip;
	struct git_ref ref;
	const struct err *e;

	e = db_transaction(w->rq->db, body, w);
	if (e == NULL || !w->tip.is_missing)
		return e;
	ref = (struct git_ref){ .branch = text_keep(w->rq->a, w->tip.branch),
		.tag = text_keep(w->rq->a, w->tip.tag) };
	if ((e = tip_read(w->rq, sent->project_id, &ref, &tip)) != NULL)
		return e;
	sent->commit_hash = tip.hash;
	sent->commit_message = message_keep(w->rq->a, tip.message);
	w->is_confirmed = true;
	w->is_read = tip.message != NULL;
	return db_transaction(w->rq->db, body, w);
}

/* Adds a fault if the repository does not have what the request names. */
static void
check_judge(struct faults *faults, const struct deployment_request *sent,
    enum git_known known)
{
	const bool is_tag = sent->tag != NULL;

	if (known == GIT_NO_REF && (is_tag || sent->branch != NULL))
		faults_add(faults, is_tag ? "/tag" : "/branch",
		    "is not a %s of the repository", is_tag ? "tag" : "branch");
	else if (known == GIT_ELSEWHERE && (is_tag || sent->branch != NULL))
		faults_add(faults, "/commitHash",
		    "is not a commit of the %s %s; name the branch or tag that "
		    "contains it, or omit one of them",
		    is_tag ? "tag" : "branch",
		    is_tag ? sent->tag : sent->branch);
}

/* Compares what the request names with the repository, if that can be asked
 * now, and takes the commit's own message. A repeated request has its response
 * already. */
static const struct err *
request_confirm(struct work *w)
{
	struct deployment_request *sent = w->rq->body;
	struct git_check check = { .ref = { sent->branch, sent->tag },
		.commit_hash = sent->commit_hash };
	const struct err *e;

	if (sent->branch == NULL && sent->tag == NULL &&
	    sent->commit_hash == NULL)
		return NULL;
	if ((e = replay_find(w->rq, &w->key, &w->replayed)) != NULL ||
	    w->replayed)
		return e;
	e = git_check(w->rq, sent->project_id, &check);
	if (e != NULL)
		return e;
	check_judge(&w->rq->faults, sent, check.known);
	if ((e = faults_check(&w->rq->faults)) != NULL)
		return e;
	w->is_elsewhere = check.known == GIT_ELSEWHERE;
	if (check.known != GIT_KNOWN || sent->commit_hash == NULL)
		return NULL;
	w->is_confirmed = true;
	sent->commit_hash = check.commit_hash;
	if (check.message != NULL)
		sent->commit_message = message_keep(w->rq->a, check.message);
	w->is_read = check.message != NULL;
	return NULL;
}

/* Runs the body. Of concurrent requests with the same key, one succeeds and the
 * others return its response. */
static const struct err *
deployment_make(struct req *rq, db_body *body)
{
	struct work w = { .rq = rq, .by = request_by(rq) };
	const struct err *e;

	if ((e = replay_init(rq, &w.key)) != NULL)
		return e;
	w.a = arena_open(DEPLOY_WORK);
	w.deploy = rules_context(rq, w.a);
	if (body == create_body)
		e = request_confirm(&w);
	if (e == NULL && !w.replayed)
		e = body_run(&w, body);
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
api_deployment_promote(struct req *rq)
{
	return deployment_make(rq, promotion_body);
}

static const struct err *
api_environment_rollback(struct req *rq)
{
	return deployment_make(rq, rollback_body);
}

/* Records that the request has changed an existing deployment, and responds
 * with it. */
static const struct err *
changed_answer(struct work *w)
{
	struct req *rq = w->rq;
	const struct err *e;
	struct deployment d;

	if ((e = deployment_by_id(rq->db, w->a, rq->id[0], &d)) != NULL)
		return e;
	answer_item(rq, &deployment_shape, &d, 0);
	return audited_change(rq, AUDIT_OF_DEPLOYMENT, d.id, d.project_id);
}

/* Creates the rollback that follows a cancellation. */
static const struct err *
undo(struct work *w)
{
	struct audited_state *audited = &w->rq->audited;
	const struct err *e;

	e = repeat_undo(&w->deploy, w->rq->id[0], &w->by, &w->made);
	if (e != NULL)
		return e;
	audited->action = ROLLBACK; /* it is not what was canceled */
	e = audited_change(w->rq, AUDIT_OF_DEPLOYMENT, w->made.id,
	    w->made.project_id);
	audited->action = NULL;
	return e;
}

static const struct err *
cancel_body(struct db *db, void *context)
{
	struct work *w = context;
	const struct cancel_request *sent = w->rq->body;
	const struct err *e;
	bool changed;

	arena_clear(w->a);
	/* the rollback locks the project first, as do all that lock both */
	if (sent->then != NULL && (e = undo(w)) != NULL)
		return e;
	if ((e = deployment_cancel(db, w->a, w->rq->id[0], &changed)) != NULL)
		return e;
	if (!changed) {
		audited_nothing(w->rq);
		return deployment_answer(w->rq, w->a, w->rq->id[0]);
	}
	return changed_answer(w);
}

/* Runs the body, which changes an existing deployment. */
static const struct err *
deployment_change(struct req *rq, db_body *body, const char *decision)
{
	struct work w = { .rq = rq,
		.by = request_by(rq),
		.a = arena_open(DEPLOY_WORK),
		.decision = decision };
	const struct err *e;

	w.deploy = rules_context(rq, w.a);
	e = db_transaction(rq->db, body, &w);
	arena_close(w.a);
	if (e == NULL)
		deploy_wake(&w.deploy);
	return e;
}

static const struct err *
api_deployment_cancel(struct req *rq)
{
	return deployment_change(rq, cancel_body, NULL);
}

/* Stores the decision, and responds with the deployment. */
static const struct err *
vote_body(struct db *db, void *context)
{
	struct work *w = context;
	const struct approval_request *sent = w->rq->body;
	const struct approval_vote vote = { .deployment_id = w->rq->id[0],
		.who = &w->rq->who,
		.role = w->rq->role,
		.approval = w->decision,
		.comment = sent->comment };
	const struct err *e;

	(void)db;
	arena_clear(w->a);
	if ((e = approval_decide(&w->deploy, &vote)) != NULL)
		return e;
	return changed_answer(w);
}

static const struct err *
api_deployment_approve(struct req *rq)
{
	return deployment_change(rq, vote_body, APPROVAL_GRANTED);
}

static const struct err *
api_deployment_deny(struct req *rq)
{
	return deployment_change(rq, vote_body, APPROVAL_DENIED);
}

/* Errors of creating a deployment: of the Git server, too, if approval requires
 * to read the commit. */
static const enum err_code created[] = { ERR_CONFLICT, ERR_RATE, ERR_UPSTREAM,
	ERR_UPSTREAM_TIMEOUT, ERR__MAX };

static const struct route routes[] = {
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
	    .errors = created },
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
	    .path = "/api/deployments/{id}/promote",
	    .role = ROLE_DEPLOYER,
	    .flags = ROUTE_IDEMPOTENT,
	    .in = &promotion_request_shape,
	    .mode = JSON_CREATE,
	    .handler = api_deployment_promote,
	    .judge = api_promotion_judge,
	    .operation = "promoteDeployment",
	    .summary = "Deploy the same commit and steps to another "
		       "environment",
	    .out = &deployment_shape,
	    .status = 201,
	    .errors = route_conflict },
	{ .method = METHOD_POST,
	    .path = "/api/environments/{id}/rollback",
	    .role = ROLE_DEPLOYER,
	    .flags = ROUTE_IDEMPOTENT | ROUTE_BODILESS,
	    .in = &rollback_request_shape,
	    .mode = JSON_CREATE,
	    .handler = api_environment_rollback,
	    .operation = ROLLBACK,
	    .summary = "Repeat an earlier successful deployment to an "
		       "environment",
	    .out = &deployment_shape,
	    .status = 201,
	    .errors = route_conflict },
	{ .method = METHOD_POST,
	    .path = "/api/deployments/{id}/cancel",
	    .role = ROLE_DEPLOYER,
	    .flags = ROUTE_BODILESS,
	    .in = &cancel_request_shape,
	    .mode = JSON_CREATE,
	    .handler = api_deployment_cancel,
	    .operation = "cancelDeployment",
	    .summary = "Cancel a pending or running deployment",
	    .out = &deployment_shape,
	    .status = 200,
	    .errors = route_conflict },
	{ .method = METHOD_POST,
	    .path = "/api/deployments/{id}/approve",
	    .role = ROLE_DEPLOYER,
	    .flags = ROUTE_BODILESS,
	    .in = &approval_request_shape,
	    .mode = JSON_CREATE,
	    .handler = api_deployment_approve,
	    .operation = "approveDeployment",
	    .summary =
		"Approve a deployment, which then takes its place in the "
		"queue",
	    .out = &deployment_shape,
	    .status = 200,
	    .errors = route_conflict },
	{ .method = METHOD_POST,
	    .path = "/api/deployments/{id}/deny",
	    .role = ROLE_DEPLOYER,
	    .flags = ROUTE_BODILESS,
	    .in = &approval_request_shape,
	    .mode = JSON_CREATE,
	    .handler = api_deployment_deny,
	    .operation = "denyDeployment",
	    .summary = "Deny approval of a deployment, which cancels it",
	    .out = &deployment_shape,
	    .status = 200,
	    .errors = route_conflict },
	ROUTE_END,
};

const struct resource deployments_resource = {
	.tag = "deployments",
	.routes = routes,
};
