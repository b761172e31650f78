/* SPDX-License-Identifier: ISC */
#include "api/resources.h"
#include "api/rules.h"
#include "deploy/approval.h"
#include "deploy/target.h"
#include "queue/deployment.h"
#include "queue/move.h"
#include "store/environment.h"
#include "web/audited.h"

/* For the variables of one environment and their encrypted values. */
#define WORK_MAX ((size_t)8 << 20)

struct work {
	struct req *rq;
	struct environment env;
};

static const struct err *
page_of_list(struct req *rq, struct page *p, struct list *out)
{
	return environment_page(rq->db, rq->a, req_int(rq, "projectId"), p,
	    out);
}

static const struct err *
api_environment_list(struct req *rq)
{
	return answer_pages(rq, &environment_shape, page_of_list);
}

static const struct err *
api_environment_show(struct req *rq)
{
	const struct err *e;
	struct environment env;

	if ((e = environment_by_id(rq->db, rq->a, rq->id[0], &env)) != NULL)
		return e;
	answer_item(rq, &environment_shape, &env, env.version);
	return NULL;
}

static const struct err *
api_environment_judge(struct req *rq, const void *item)
{
	struct arena *a = arena_open(WORK_MAX);
	struct deploy deploy = rules_context(rq, a);
	const struct err *e;

	if ((e = environment_judge(rq->db, item, &rq->faults)) == NULL &&
	    (e = target_judge(&deploy, item)) == NULL)
		e = approval_judge_users(&deploy, item, rq->member);
	arena_close(a);
	return e;
}

/* Writes a valid environment: the row, and separately its secrets. */
static const struct err *
environment_write(struct req *rq, const struct environment *env, int64_t *id)
{
	struct arena *a = arena_open(WORK_MAX);
	struct deploy deploy = rules_context(rq, a);
	struct environment open = *env;
	struct environment_secrets secrets;
	const struct err *e;

	*id = env->id;
	if ((e = target_seal(&deploy, &open, &secrets)) == NULL)
		e = env->id == 0 ? environment_insert(rq->db, a, &open, id) :
				   environment_update(rq->db, &open);
	secrets.id = *id;
	if (e == NULL)
		e = environment_secrets_save(rq->db, &secrets);
	arena_close(a);
	return e;
}

static const struct err *
create_body(struct db *db, void *context)
{
	struct work *w = context;
	struct req *rq = w->rq;
	const struct environment *sent = rq->body;
	const struct err *e;
	int64_t id;

	e = deployment_hold_project(db, rq->a, sent->project_id);
	if (e != NULL && e->code != ERR_NOTFOUND)
		return e;
	if ((e = req_judge(rq)) != NULL)
		return e;
	if ((e = environment_write(rq, sent, &id)) != NULL ||
	    (e = audited_change(rq, AUDIT_OF_ENVIRONMENT, id,
		 sent->project_id)) != NULL)
		return e;
	return environment_by_id(db, rq->a, id, &w->env);
}

static const struct err *
api_environment_create(struct req *rq)
{
	struct environment *sent = rq->body;
	struct work w = { .rq = rq };
	const struct err *e;

	if (sent->branches.s == NULL)
		sent->branches.s = "[]";
	if (sent->tags.s == NULL)
		sent->tags.s = "[]";
	if (sent->variables.s == NULL)
		sent->variables.s = "[]";
	if (sent->approvers.s == NULL)
		sent->approvers.s = "[]";
	if (sent->approval == NULL)
		sent->approval = ENVIRONMENT_APPROVAL_NONE;
	sent->created_by = (struct maybe){ .n = rq->who.user_id, .set = true };
	if ((e = req_transaction(rq, create_body, &w)) != NULL)
		return e;
	answer_location(rq, "/api/environments/%lld", (long long)w.env.id);
	answer_item(rq, &environment_shape, &w.env, w.env.version);
	return NULL;
}

/* Locks the project before its environment, as deployments do. */
static const struct err *
environment_hold(struct work *w)
{
	struct req *rq = w->rq;
	const struct err *e;

	e = environment_hold_project(rq->db, rq->a, rq->id[0]);
	return e != NULL ? e :
			   environment_lock(rq->db, rq->a, rq->id[0], &w->env);
}

static const struct err *
change_body(struct db *db, void *context)
{
	struct work *w = context;
	struct req *rq = w->rq;
	struct environment old;
	const struct err *e;
	int64_t id;

	if ((e = environment_hold(w)) != NULL)
		return e;
	old = w->env;
	if ((e = req_update(rq, &environment_shape, old.version, &w->env)) !=
		NULL ||
	    audited_same(rq, &environment_shape, &old, &w->env))
		return e;
	if ((e = environment_write(rq, &w->env, &id)) != NULL ||
	    (e = audited_change(rq, AUDIT_OF_ENVIRONMENT, id,
		 w->env.project_id)) != NULL)
		return e;
	return environment_by_id(db, rq->a, id, &w->env);
}

static const struct err *
api_environment_change(struct req *rq)
{
	struct work w = { .rq = rq };
	const struct err *e;

	if ((e = req_transaction(rq, change_body, &w)) != NULL)
		return e;
	answer_item(rq, &environment_shape, &w.env, w.env.version);
	return NULL;
}

static const struct err *
remove_body(struct db *db, void *context)
{
	struct work *w = context;
	const struct err *e;

	if ((e = environment_hold(w)) != NULL)
		return e;
	if ((e = req_match(w->rq, &environment_shape, w->env.version)) != NULL)
		return e;
	if ((e = environment_delete(db, w->env.id)) != NULL ||
	    (e = move_cancel_of_environment(db, w->rq->a, w->env.id)) != NULL)
		return e;
	return audited_change(w->rq, AUDIT_OF_ENVIRONMENT, w->env.id,
	    w->env.project_id);
}

static const struct err *
api_environment_remove(struct req *rq)
{
	struct work w = { .rq = rq };

	return req_transaction(rq, remove_body, &w);
}

static const struct route_param environment_params[] = {
	ROUTE_PAGE,
	{ .name = "projectId",
	    .type = PARAM_INT,
	    .min = ID_MIN,
	    .doc = "Only environments of this project." },
	PARAM_END,
};

static const struct route routes[] = {
	LIST("/api/environments", ROLE_GUEST, environment_params,
	    api_environment_list, "listEnvironments",
	    "List environments, ordered by project and position",
	    environment_shape),
	CREATE("/api/environments", ROLE_MAINTAINER, api_environment_create,
	    api_environment_judge, "createEnvironment",
	    "Create an environment of a project", environment_shape),
	SHOW("/api/environments/{id}", ROLE_VIEWER, api_environment_show,
	    "getEnvironment", "Get an environment with what is live in it",
	    environment_shape),
	CHANGE("/api/environments/{id}", ROLE_MAINTAINER,
	    api_environment_change, api_environment_judge, "updateEnvironment",
	    "Update an environment", environment_shape),
	REMOVE("/api/environments/{id}", ROLE_MAINTAINER, ROUTE_GUARDED,
	    api_environment_remove, "deleteEnvironment",
	    "Delete an environment and its notifiers and cancel its pending "
	    "deployments",
	    NULL),
	ROUTE_END,
};

const struct resource environments_resource = {
	.tag = "environments",
	.about = "The places that projects are deployed to.",
	.routes = routes,
};
