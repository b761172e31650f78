/* SPDX-License-Identifier: ISC */
/* The variables that steps see. */
#include "job/environment.h"

#include <string.h>

#include "core/str.h"
#include "job/job.h"

struct env {
	struct arena *a;
	const char **items;
	size_t n;
	size_t own; /* the first of them are set by the service */
};

static void
env_put(struct env *env, const char *name, const char *value)
{
	env->items[env->n++] = arena_printf(env->a, "%s=%s", name,
	    value == NULL ? "" : value);
	env->own = env->n;
}

/* Adds a variable of the user, unless the service has set it. */
static void
env_add(struct env *env, const char *name, const char *value)
{
	const char *prefix = arena_printf(env->a, "%s=", name);
	size_t i;

	if (str_starts(name, "SLIPWAY_"))
		return;
	for (i = 0; i < env->own; i++)
		if (str_starts(env->items[i], prefix))
			return;
	env->items[env->n++] = arena_printf(env->a, "%s%s", prefix, value);
}

static void
env_map(struct env *env, const struct map *map)
{
	const struct pair *p = map->items;
	size_t i;

	for (i = 0; i < map->n; i++)
		env_add(env, p[i].key, p[i].value);
}

/* Directories of the cache, by the variables of programs that use it. A user can
 * set these to something else. */
static void
env_cache(struct env *env, const char *cache)
{
	static const char *const names[][2] = {
		{ "XDG_CACHE_HOME", "" },
		{ "COMPOSER_CACHE_DIR", "/composer" },
		{ "npm_config_cache", "/npm" },
		{ "PIP_CACHE_DIR", "/pip" },
	};
	size_t i;

	env->own = env->n;
	for (i = 0; cache != NULL && i < sizeof(names) / sizeof(names[0]); i++)
		env_add(env, names[i][0],
		    arena_printf(env->a, "%s%s", cache, names[i][1]));
}

static void
env_number(struct env *env, const char *name, int64_t n)
{
	env_put(env, name, arena_printf(env->a, "%lld", (long long)n));
}

const char *const *
job_environment(const struct job *job, const char *branch, const char *hash)
{
	const struct job_description *spec = &job->spec;
	struct env env = { .a = job->a };

	env.items = arena_alloc(job->a, spec->env.n + spec->secret.n + 24,
	    sizeof(*env.items));
	env_put(&env, "PATH", spec->path);
	env_put(&env, "HOME", job->place.home);
	/* without it, bash looks up the account first */
	env_put(&env, "SHELL", "/bin/bash");
	env_put(&env, "LANG", "C.UTF-8");
	env_put(&env, "CI", "true");
	env_number(&env, "SLIPWAY_DEPLOYMENT_ID", spec->deployment);
	if (spec->rollback_to != 0)
		env_number(&env, "SLIPWAY_ROLLBACK_TO", spec->rollback_to);
	env_number(&env, "SLIPWAY_PROJECT_ID", spec->project);
	env_put(&env, "SLIPWAY_PROJECT", spec->project_name);
	env_put(&env, "SLIPWAY_PIPELINE", spec->pipeline_name);
	if (spec->environment_name != NULL)
		env_put(&env, "SLIPWAY_ENVIRONMENT", spec->environment_name);
	env_put(&env, "SLIPWAY_BRANCH", branch);
	if (spec->tag != NULL)
		env_put(&env, "SLIPWAY_TAG", spec->tag);
	env_put(&env, "SLIPWAY_COMMIT", hash);
	env_put(&env, "SLIPWAY_REPOSITORY", spec->repository);
	env_put(&env, "SLIPWAY_WORKSPACE", job->place.workspace);
	if (job->place.cache != NULL)
		env_put(&env, "SLIPWAY_CACHE", job->place.cache);
	env_map(&env, &spec->env);
	env_map(&env, &spec->secret);
	env_cache(&env, job->place.cache);
	return env.items;
}
