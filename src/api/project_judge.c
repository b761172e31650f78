/* SPDX-License-Identifier: ISC */
/* Checks a project that a request creates or changes. */
#include <string.h>

#include "access/setter.h"
#include "api/projects.h"
#include "api/rules.h"
#include "core/branch.h"
#include "core/str.h"
#include "deploy/deploy.h"
#include "deploy/presets.h"
#include "deploy/repository.h"
#include "deploy/secrets.h"
#include "deploy/target.h"
#include "queue/deployment.h"

#define GUEST_RULE "can be changed only by users who see all projects"

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
	struct arena *a = arena_open(PROJECT_MAX);
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

/* Checks that each can be a repository of the Git server. */
static const struct err *
submodules_judge(struct req *rq, const struct project *p)
{
	const struct forge *forge = rq->access->forge;
	const struct submodule_path *item;
	const struct err *e;
	struct list list;
	size_t i;

	e = json_items_sent(rq->a, &submodule_path_shape,
	    p->submodule_repositories.s, &list);
	item = list.items;
	for (i = 0; e == NULL && i < list.n; i++) {
		const char *at = arena_printf(rq->a,
		    "/submoduleRepositories/%zu", i);
		const struct forge_repo repo = { .path = item[i].path };

		if (repo.path != NULL && !faults_at(&rq->faults, at) &&
		    (str_ends(repo.path, ".git") ||
			(forge != NULL && forge_has_api(forge) &&
			    forge_repo_address(forge, rq->a, &repo) == NULL)))
			faults_add(&rq->faults, at,
			    "must be the path of a repository at the Git "
			    "server, such as team/theme, without .git");
	}
	return e;
}

/* Settings and pipelines can change after a member was stored, so only members
 * that the request changes are checked. */
static const struct err *
changes_judge(struct req *rq, const struct project *p,
    const struct project *stored)
{
	const struct err *e;
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
	if (!str_eq(p->submodule_repositories.s,
		stored->submodule_repositories.s) &&
	    (e = submodules_judge(rq, p)) != NULL)
		return e;
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

bool
project_is_set(const struct req *rq, const struct project *p,
    const char *before)
{
	return p->repository != NULL &&
	    (!str_eq(p->repository, before) ||
		json_is_only(rq->text, "repository"));
}

bool
project_is_list_set(const struct req *rq, const struct project *p,
    const char *before)
{
	return p->submodule_repositories.s != NULL &&
	    (!str_eq(p->submodule_repositories.s,
		 before != NULL ? before : "[]") ||
		json_is_only(rq->text, "submoduleRepositories"));
}

/* The credentials of others read what a user without an account at the Git
 * server sets. */
static const struct err *
setter_judge(struct req *rq, const struct project *p,
    const struct project *stored)
{
	static const char why[] =
	    "can be set only by a maintainer of all projects, or by a user who "
	    "signs in at the Git server, because the service cannot know "
	    "whether you may read the repository there";
	const struct err *e = NULL;
	bool may = true;

	if (role_of(rq->who.role) >= ROLE_MAINTAINER)
		return NULL;
	if (project_is_set(rq, p, stored->repository))
		e = setter_may(rq->access, rq->a, rq->who.user_id,
		    p->repository, &may);
	if (e == NULL && !may)
		faults_add(&rq->faults, "/repository", "%s", why);
	may = true;
	if (e == NULL &&
	    project_is_list_set(rq, p, stored->submodule_repositories.s))
		e = setter_may_list(rq->access, rq->a, rq->who.user_id, &may);
	if (e == NULL && !may)
		faults_add(&rq->faults, "/submoduleRepositories", "%s", why);
	return e;
}

const struct err *
project_request_judge(struct req *rq, const void *item)
{
	struct arena *a = arena_open(PROJECT_MAX);
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
