/* SPDX-License-Identifier: ISC */
#include "api/projects.h"

#include <string.h>

#include "api/git_read.h"
#include "api/resources.h"
#include "api/rules.h"
#include "core/str.h"
#include "deploy/deploy.h"
#include "deploy/presets.h"
#include "deploy/secrets.h"
#include "queue/deployment.h"
#include "queue/push.h"
#include "queue/stores.h"
#include "store/cache.h"
#include "store/env.h"
#include "store/gitrepo.h"
#include "store/project.h"
#include "web/audited.h"
#include "web/scope.h"

#define JOINED_MAX ((size_t)16 << 20) /* the same for two sets of presets */

/* What a transaction works on. */
struct work {
	struct req *rq;
	struct project p;
};

/* Reduces a list to the page. */
static void
list_cut(struct list *list, const struct page *p)
{
	const size_t before = (size_t)page_offset(p);
	struct project *items = list->items;

	if (before >= list->n) {
		list->n = 0;
		return;
	}
	list->items = items + before;
	list->n -= before;
	if (list->n > (size_t)p->limit)
		list->n = (size_t)p->limit;
}

static const struct err *
page_of_list(struct req *rq, struct page *p, struct list *out)
{
	const char *remote = req_str(rq, "remote");
	const struct err *e;
	struct project *item;
	size_t i;

	if (remote == NULL) {
		e = project_page(rq->db, rq->a, req_str(rq, "name"), p, out);
	} else {
		e = git_projects(rq, remote, out);
		p->total = (int64_t)out->n;
		list_cut(out, p);
	}
	item = out->items;
	for (i = 0; e == NULL && i < out->n; i++)
		item[i].role = scope_role(rq, item[i].role);
	return e;
}

/* Reads a project, in which the request has its final role. */
static const struct err *
project_read(struct req *rq, int64_t id, struct project *out)
{
	const struct err *e = project_with_workspace(rq->db, rq->a, id, out);

	out->role = role_name(rq->role);
	return e;
}

static const struct err *
api_project_list(struct req *rq)
{
	return answer_pages(rq, &project_shape, page_of_list);
}

static const struct err *
api_project_show(struct req *rq)
{
	const struct err *e;
	struct project p;

	if ((e = project_read(rq, rq->id[0], &p)) != NULL)
		return e;
	answer_item(rq, &project_shape, &p, p.version);
	return NULL;
}

/* Writes a valid project: the row, and separately its secrets. */
static const struct err *
project_write(struct req *rq, const struct project *p, int64_t *id)
{
	struct arena *a = arena_open(PROJECT_MAX);
	struct deploy deploy = rules_context(rq, a);
	struct project open = *p;
	struct secrets secrets;
	const struct err *e;

	*id = p->id;
	e = secrets_take(&deploy, &open, &secrets);
	if (e == NULL)
		e = faults_check(&rq->faults);
	if (e == NULL && p->id == 0)
		e = project_insert(rq->db, rq->a, &open, id);
	else if (e == NULL)
		e = project_update(rq->db, &open);
	if (e == NULL)
		e = secrets_save(&deploy, &secrets, *id);
	arena_close(a);
	return e;
}

static const struct err *
create_body(struct db *db, void *context)
{
	struct work *w = context;
	const struct err *e;
	int64_t id;

	if ((e = project_queue_up(db)) != NULL)
		return e;
	if ((e = req_judge(w->rq)) != NULL)
		return e;
	if ((e = project_write(w->rq, w->rq->body, &id)) != NULL ||
	    (e = gitrepo_set_by(db, id, w->rq->who.user_id)) != NULL ||
	    (e = submodule_set_by(db, id, w->rq->who.user_id)) != NULL ||
	    (e = audited_change(w->rq, AUDIT_OF_PROJECT, id, id)) != NULL)
		return e;
	/* read inside the transaction: a later query could fail */
	return project_read(w->rq, id, &w->p);
}

static const struct err *
api_project_create(struct req *rq)
{
	struct project *sent = rq->body;
	struct work w = { .rq = rq };
	const struct err *e;

	if (sent->env_presets.s == NULL)
		sent->env_presets.s = "[]";
	if (sent->triggers.s == NULL)
		sent->triggers.s = "[]";
	if (sent->submodule_repositories.s == NULL)
		sent->submodule_repositories.s = "[]";
	if (sent->extra_env == NULL)
		sent->extra_env = ENV_EXTRA_MAINTAINERS;
	sent->created_by = (struct maybe){ .n = rq->who.user_id, .set = true };
	if ((e = req_transaction(rq, create_body, &w)) != NULL)
		return e;
	answer_location(rq, "/api/projects/%lld", (long long)w.p.id);
	answer_item(rq, &project_shape, &w.p, w.p.version);
	return NULL;
}

/* The repository found at an address is stored by its id; a change of the
 * address must not lead to the old one. Sending the same address alone is a
 * correction, too: the repository may have been deleted and another created in
 * its place. A client that writes all members back corrects nothing. */
static const struct err *
repository_correct(struct db *db, struct req *rq, const struct project *p,
    const char *before)
{
	const struct err *e;

	if (!project_is_set(rq, p, before))
		return NULL;
	if ((e = gitrepo_set_by(db, p->id, rq->who.user_id)) != NULL ||
	    (e = gitrepo_forget(db, p->id)) != NULL ||
	    (e = push_forget(db, p->id)) != NULL)
		return e;
	return commits_forget(db, p->id);
}

/* Unfinished deployments were started for the old repository and use the Git
 * token of the user who started them. Another user must not redirect them to a
 * different repository. */
static const struct err *
check_moved(struct db *db, struct req *rq, const struct project *p,
    const char *before)
{
	const struct err *e;
	bool some;

	if (str_eq(p->repository, before))
		return NULL;
	if ((e = deployment_unended(db, rq->a, p->id, &some)) != NULL)
		return e;
	if (!some)
		return NULL;
	return err_public(ERR_CONFLICT,
	    "Deployments of this project are pending or running. Cancel them "
	    "or wait until they end, then change the repository.");
}

static const struct err *
change_body(struct db *db, void *context)
{
	struct work *w = context;
	struct req *rq = w->rq;
	const struct err *e;
	struct project old;
	int64_t id;

	if ((e = project_queue_up(db)) != NULL)
		return e;
	if ((e = project_lock(db, rq->a, rq->id[0], &w->p)) != NULL ||
	    (e = project_read(rq, rq->id[0], &w->p)) != NULL)
		return e;
	old = w->p;
	if ((e = req_update(rq, &project_shape, old.version, &w->p)) != NULL)
		return e;
	if ((e = check_moved(db, rq, &w->p, old.repository)) != NULL ||
	    (e = repository_correct(db, rq, &w->p, old.repository)) != NULL)
		return e;
	if (project_is_list_set(rq, &w->p, old.submodule_repositories.s) &&
	    (e = submodule_set_by(db, old.id, rq->who.user_id)) != NULL)
		return e;
	if (audited_same(rq, &project_shape, &old, &w->p))
		return NULL;
	if ((e = project_write(rq, &w->p, &id)) != NULL ||
	    (e = audited_change(rq, AUDIT_OF_PROJECT, id, id)) != NULL)
		return e;
	return project_read(rq, id, &w->p);
}

static const struct err *
api_project_change(struct req *rq)
{
	struct work w = { .rq = rq };
	const struct err *e;

	if ((e = req_transaction(rq, change_body, &w)) != NULL)
		return e;
	answer_item(rq, &project_shape, &w.p, w.p.version);
	return NULL;
}

static const struct err *
remove_body(struct db *db, void *context)
{
	struct work *w = context;
	const struct err *e;

	if ((e = project_lock(db, w->rq->a, w->rq->id[0], &w->p)) != NULL)
		return e;
	if ((e = req_match(w->rq, &project_shape, w->p.version)) != NULL)
		return e;
	if ((e = store_project_delete(db, w->p.id)) != NULL ||
	    (e = project_delete(db, w->p.id)) != NULL)
		return e;
	return audited_change(w->rq, AUDIT_OF_PROJECT, w->p.id, w->p.id);
}

static const struct err *
api_project_remove(struct req *rq)
{
	const struct deploy deploy = rules_context(rq, rq->a);
	struct work w = { .rq = rq };
	const struct err *e;

	if ((e = req_transaction(rq, remove_body, &w)) == NULL)
		deploy_wake(&deploy); /* it sends commit statuses */
	return e;
}

const struct err *
project_presets_lock(struct req *rq, int64_t project_id)
{
	struct arena *a = arena_open(PROJECT_MAX);
	const struct err *e;
	struct project p;

	e = project_lock(rq->db, a, project_id, &p);
	arena_close(a);
	return e;
}

/* Reads the project and adds these presets to its own. */
static const struct err *
project_join(struct req *rq, struct arena *a, int64_t project_id,
    struct json_text presets, struct project *out, size_t *added)
{
	const struct err *e;

	*added = 0;
	if ((e = project_by_id(rq->db, a, project_id, out)) != NULL)
		return e;
	return presets_join(a, out->env_presets, presets, &out->env_presets,
	    added);
}

/* Applies the checks of the project routes. */
static const struct err *
joined_judge(struct deploy *deploy, const struct project *p)
{
	const int64_t most = field_find(project_shape.fields, "env_presets")
				 ->max;
	const struct err *e;
	struct list all;

	if ((e = json_items(deploy->a, &preset_shape, p->env_presets.s,
		 &all)) != NULL)
		return e;
	if ((int64_t)all.n > most)
		faults_add(deploy->faults, "/envPresets",
		    "must have at most %lld members, has %zu", (long long)most,
		    all.n);
	project_shape.check(p, "", deploy->faults);
	return deploy->faults->n > 0 ? NULL : secrets_judge(deploy, p);
}

const struct err *
project_presets_judge(struct req *rq, int64_t project_id,
    struct json_text presets)
{
	struct arena *a = arena_open(JOINED_MAX);
	struct deploy deploy = rules_context(rq, a);
	struct faults found;
	const struct err *e;
	struct project p;
	size_t i, added;

	e = project_join(rq, a, project_id, presets, &p, &added);
	if (e == NULL && added > 0) {
		faults_init(&found, a);
		deploy.faults = &found;
		e = joined_judge(&deploy, &p);
		for (i = 0; i < found.n && i < FAULTS_MAX; i++)
			faults_add(&rq->faults, "/presets",
			    "cannot be added to the project: %s%s%s; change "
			    "the project, or send \"none\"",
			    found.item[i].pointer,
			    *found.item[i].pointer == '\0' ? "" : " ",
			    found.item[i].detail);
	}
	arena_close(a);
	return e != NULL && e->code == ERR_NOTFOUND ? NULL : e;
}

const struct err *
project_presets_add(struct req *rq, int64_t project_id,
    struct json_text presets)
{
	struct arena *a = arena_open(JOINED_MAX);
	const struct err *e;
	struct project p;
	size_t added;
	int64_t id;

	e = project_join(rq, a, project_id, presets, &p, &added);
	if (e == NULL && added > 0)
		e = project_write(rq, &p, &id);
	arena_close(a);
	return e;
}

static const struct err *
cache_body(struct db *db, void *context)
{
	struct req *rq = context;
	const int64_t id = rq->id[0];
	const struct err *e;

	if ((e = deployment_hold_project(db, rq->a, id)) != NULL ||
	    (e = cache_empty(db, id)) != NULL)
		return e;
	return audited_change(rq, AUDIT_OF_PROJECT, id, id);
}

static const struct err *
api_project_cache(struct req *rq)
{
	return req_transaction(rq, cache_body, rq);
}

static const struct route_param project_params[] = {
	ROUTE_PAGE,
	{ .name = "name",
	    .type = PARAM_STR,
	    .max = 100,
	    .doc = "Part of the name, ignoring case, or an equal name." },
	{ .name = "remote",
	    .type = PARAM_STR,
	    .max = 1000,
	    .doc = "Instead of a name: address of a repository, for which the "
		   "Git server is asked. Selects the projects of that "
		   "repository, also if they have an older address of it." },
	PARAM_END,
};
static const enum err_code asks_server[] = { ERR_RATE, ERR_UPSTREAM,
	ERR_UPSTREAM_TIMEOUT, ERR__MAX };

static const struct route routes[] = {
	{ .method = METHOD_GET,
	    .path = "/api/projects",
	    .role = ROLE_GUEST,
	    .query = project_params,
	    .handler = api_project_list,
	    .operation = "listProjects",
	    .summary = "List projects, ordered by name",
	    .out = &project_shape,
	    .list = LIST_PAGES,
	    .status = 200,
	    .errors = asks_server },
	CREATE("/api/projects", ROLE_MAINTAINER, api_project_create,
	    project_request_judge, "createProject", "Create a project",
	    project_shape),
	SHOW("/api/projects/{id}", ROLE_VIEWER, api_project_show, "getProject",
	    "Get a project with the state of its workspace", project_shape),
	CHANGE("/api/projects/{id}", ROLE_MAINTAINER, api_project_change,
	    project_request_judge, "updateProject", "Update a project",
	    project_shape),
	REMOVE("/api/projects/{id}", ROLE_MAINTAINER, ROUTE_GUARDED,
	    api_project_remove, "deleteProject",
	    "Delete a project with its pipelines and steps, and cancel its "
	    "pending deployments",
	    NULL),
	REMOVE("/api/projects/{id}/cache", ROLE_DEPLOYER, 0, api_project_cache,
	    "emptyProjectCache",
	    "Empty the cache of a project before its next deployment", NULL),
	ROUTE_END,
};

const struct resource projects_resource = {
	.tag = "projects",
	.about = "Git repositories and how they are deployed.",
	.routes = routes,
};
