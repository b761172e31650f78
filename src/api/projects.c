/* SPDX-License-Identifier: ISC */
#include "api/projects.h"

#include <string.h>

#include "access/setter.h"
#include "api/git_read.h"
#include "api/resources.h"
#include "api/rules.h"
#include "core/branch.h"
#include "core/str.h"
#include "deploy/deploy.h"
#include "deploy/presets.h"
#include "deploy/repository.h"
#include "deploy/secrets.h"
#include "deploy/target.h"
#include "store/cache.h"
#include "store/deployment.h"
#include "store/env.h"
#include "store/gitrepo.h"
#include "store/pipeline.h"
#include "store/project.h"
#include "store/push.h"
#include "web/audited.h"
#include "web/scope.h"

#define TRIGGERS_MAX ((size_t)7 << 20) /* for an arena that holds them */
#define GUEST_RULE "can be changed only by users who see all projects"
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

/* Checks that the pattern can match a branch or tag. */
static void
trigger_look(struct req *rq, const struct trigger *t, size_t index)
{
	const char *at = arena_printf(rq->a, "/triggers/%zu/%s", index,
	    t->tag != NULL ? "tag" : "branch");
	const char *pattern = t->tag != NULL ? t->tag : t->branch;
	const char *fault;

	if (pattern != NULL && !faults_at(&rq->faults, at) &&
	    (fault = target_pattern_fault(rq->a, pattern)) != NULL)
		faults_add(&rq->faults, at, "%s", fault);
}

static const struct err *
trigger_environment(struct req *rq, struct arena *a, int64_t project_id,
    struct maybe environment_id, size_t index)
{
	struct environment env;
	const struct err *e;

	if (!environment_id.set)
		return NULL;
	e = environment_by_id(rq->db, a, environment_id.n, &env);
	if (e != NULL && e->code != ERR_NOTFOUND)
		return e;
	if (e != NULL || env.project_id != project_id)
		faults_add(&rq->faults,
		    arena_printf(a, "/triggers/%zu/environmentId", index),
		    "must be an environment of this project");
	return NULL;
}

/* Checks the trigger's branch or tag, pipeline and environment. */
static const struct err *
trigger_judge(struct req *rq, struct arena *a, const struct project *p,
    const struct trigger *t, size_t index)
{
	const struct err *e;

	trigger_look(rq, t, index);
	e = trigger_environment(rq, a, p->id, t->environment_id, index);
	if (e != NULL || t->pipeline_id == 0)
		return e;
	e = deployment_share_pipeline(rq->db, a, p->id, t->pipeline_id);
	if (e == NULL || e->code != ERR_NOTFOUND)
		return e;
	faults_add(&rq->faults,
	    arena_printf(a, "/triggers/%zu/pipelineId", index),
	    "must be a pipeline of this project");
	return NULL;
}

static const struct err *
triggers_judge(struct req *rq, const struct project *p)
{
	struct arena *a = arena_open(TRIGGERS_MAX);
	const struct trigger *t;
	const struct err *e;
	struct list list;
	size_t i;

	e = json_items_sent(a, &trigger_shape, p->triggers.s, &list);
	t = list.items;
	for (i = 0; e == NULL && i < list.n; i++)
		e = trigger_judge(rq, a, p, &t[i], i);
	arena_close(a);
	return e;
}

/* Settings and pipelines can change after a member was stored, so only members
 * that the request changes are checked. */
static const struct err *
changes_judge(struct req *rq, const struct project *p,
    const struct project *stored)
{
	const char *fault;

	if (p->repository != NULL &&
	    !str_eq(p->repository, stored->repository) &&
	    (fault = repository_fault(rq->a, &rq->settings->gitserver,
		 p->repository)) != NULL)
		faults_add(&rq->faults, "/repository", "%s", fault);
	if (p->default_branch != NULL &&
	    !str_eq(p->default_branch, stored->default_branch) &&
	    (fault = branch_fault(p->default_branch)) != NULL)
		faults_add(&rq->faults, "/defaultBranch", "%s", fault);
	if (str_eq(p->triggers.s, stored->triggers.s))
		return NULL;
	return triggers_judge(rq, p);
}

/* Names are unique among all projects, so a conflict would tell a guest about
 * others; and the service may read repositories that a guest must not see. */
static void
guest_judge(struct req *rq, const struct project *p,
    const struct project *stored)
{
	if (p->name != NULL && !str_eq(p->name, stored->name))
		faults_add(&rq->faults, "/name", GUEST_RULE);
	if (p->repository != NULL && !str_eq(p->repository, stored->repository))
		faults_add(&rq->faults, "/repository", GUEST_RULE);
}

/* Whether the update sets the repository, or confirms it by sending it alone. */
static bool
is_set(const struct req *rq, const struct project *p, const char *before)
{
	return p->repository != NULL &&
	    (!str_eq(p->repository, before) ||
		json_is_only(rq->text, "repository"));
}

/* The service's credentials read what a user without an account at the Git
 * server sets. */
static const struct err *
setter_judge(struct req *rq, const struct project *p,
    const struct project *stored)
{
	const struct err *e;
	bool may;

	if (role_of(rq->who.role) >= ROLE_MAINTAINER ||
	    !is_set(rq, p, stored->repository))
		return NULL;
	e = setter_may(rq->access, rq->a, rq->who.user_id, p->repository, &may);
	if (e == NULL && !may)
		faults_add(&rq->faults, "/repository",
		    "can be set only by a maintainer of all projects, or by a "
		    "user who signs in at the Git server, because the service "
		    "cannot know whether you may read the repository there");
	return e;
}

static const struct err *
api_project_judge(struct req *rq, const void *item)
{
	struct arena *a = arena_open(TRIGGERS_MAX);
	struct deploy deploy = rules_context(rq, a);
	const struct project *p = item;
	struct project stored = { .id = 0 };
	const struct err *e = NULL;

	if (p->id != 0)
		e = project_by_id(rq->db, a, p->id, &stored);
	if (e == NULL && rq->member != 0)
		guest_judge(rq, p, &stored);
	if (e == NULL)
		e = changes_judge(rq, p, &stored);
	if (e == NULL)
		e = setter_judge(rq, p, &stored);
	arena_close(a);
	if (e != NULL ||
	    (e = presets_check(p->env_presets, &rq->faults)) != NULL ||
	    (e = secrets_judge(&deploy, p)) != NULL)
		return e;
	return rq->member != 0 ? NULL : project_judge(rq->db, p, &rq->faults);
}

/* Writes a valid project: the row, and separately its secrets. */
static const struct err *
project_write(struct req *rq, const struct project *p, int64_t *id)
{
	struct arena *a = arena_open(TRIGGERS_MAX);
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

	if (!is_set(rq, p, before))
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
	if ((e = project_delete(db, w->p.id)) != NULL)
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
	struct arena *a = arena_open(TRIGGERS_MAX);
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
	    api_project_judge, "createProject", "Create a project",
	    project_shape),
	SHOW("/api/projects/{id}", ROLE_VIEWER, api_project_show, "getProject",
	    "Get a project with the state of its workspace", project_shape),
	CHANGE("/api/projects/{id}", ROLE_MAINTAINER, api_project_change,
	    api_project_judge, "updateProject", "Update a project",
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
