/* SPDX-License-Identifier: ISC */
#include "deploy/variables.h"

#include "core/str.h"
#include "deploy/secrets.h"
#include "json/json.h"
#include "store/env.h"

static const struct err *
vars_read(struct arena *a, const char *text, struct list *out)
{
	const struct json_pair *pair;
	const struct err *e;
	struct env_var *v;
	struct list pairs;
	size_t i;

	*out = (struct list){ .items = NULL };
	if ((e = json_pairs(a, text, &pairs)) != NULL)
		return e;
	pair = pairs.items;
	v = arena_alloc(a, pairs.n, sizeof(*v));
	for (i = 0; i < pairs.n; i++)
		v[i] = (struct env_var){ .name = pair[i].key,
			.value = pair[i].value };
	*out = (struct list){ .items = v, .n = pairs.n };
	return NULL;
}

/* Null in what was sent is what a deployment shows of a secret: as if it had
 * been left out. */
static void
gaps_drop(struct faults *f, const struct list *presets, struct list *given)
{
	const struct preset *p = presets->items;
	struct env_var *v = given->items;
	size_t i, k, kept = 0;

	for (i = 0; i < given->n; i++) {
		for (k = 0; k < presets->n && !str_eq(p[k].key, v[i].name); k++)
			continue;
		if (v[i].value != NULL)
			v[kept++] = v[i];
		else if (k == presets->n || !p[k].secret)
			faults_add(f, fault_pointer(f, "/envVars", v[i].name),
			    "must be a string: null stands for secrets only");
	}
	given->n = kept;
}

/* Splits the variables: secret ones stand in the open as null, and sealed where
 * only the dispatcher can read them. */
static const struct err *
vars_store(const struct deploy *deploy, int64_t project_id,
    const struct list *vars, struct deployment *out)
{
	struct arena *a = deploy->a;
	const struct env_var *v = vars->items;
	struct json_pair *open, *secret;
	struct list opens, secrets = { .n = 0 };
	const struct err *e = NULL;
	size_t i;

	open = arena_alloc(a, vars->n, sizeof(*open));
	secret = arena_alloc(a, vars->n, sizeof(*secret));
	opens = (struct list){ .items = open, .n = vars->n };
	secrets.items = secret;
	for (i = 0; i < vars->n && e == NULL; i++) {
		open[i].key = v[i].name;
		open[i].value = v[i].secret ? NULL : v[i].value;
		if (!v[i].secret)
			continue;
		secret[secrets.n].key = v[i].name;
		e = secrets_seal(deploy, project_id, &v[i],
		    &secret[secrets.n++].value);
	}
	if (e != NULL ||
	    (e = secrets_text(a, &opens, &out->env_vars.s)) != NULL ||
	    secrets.n == 0)
		return e;
	return secrets_text(a, &secrets, &out->secret_vars.s);
}

const char *
variables_refusal(const struct project *p, enum role role)
{
	if (str_eq(p->extra_env, ENV_EXTRA_NOBODY))
		return "is not among the project's envPresets, and the project "
		       "accepts no other variables (extraEnv is nobody)";
	if (role < ROLE_MAINTAINER &&
	    !str_eq(p->extra_env, ENV_EXTRA_DEPLOYERS))
		return "is not among the project's envPresets, and only a "
		       "maintainer may set other variables (extraEnv is "
		       "maintainers)";
	return NULL;
}

const struct err *
variables_extra(const struct deploy *deploy, const struct project *p,
    struct json_text vars, const char **out)
{
	const struct preset *preset;
	const struct json_pair *pair;
	struct list presets, pairs;
	const struct err *e;
	size_t i, k;

	*out = NULL;
	e = json_items(deploy->a, &preset_shape, p->env_presets.s, &presets);
	if (e == NULL)
		e = json_pairs(deploy->a, vars.s, &pairs);
	if (e != NULL)
		return e;
	preset = presets.items;
	pair = pairs.items;
	for (i = 0; *out == NULL && i < pairs.n; i++) {
		for (k = 0; k < presets.n; k++)
			if (str_eq(preset[k].key, pair[i].key))
				break;
		if (k == presets.n)
			*out = pair[i].key;
	}
	return NULL;
}

const struct err *
variables_make(struct deploy *deploy, const struct project *p,
    const struct deploy_order *order, struct deployment *out)
{
	struct arena *a = deploy->a;
	struct list presets, given, all;
	const struct env_rules rules = { .presets = &presets,
		.refusal = variables_refusal(p, order->role) };
	const struct err *e;

	if (faults_at(deploy->faults, "/envVars"))
		return NULL; /* not left out, but not to be read */
	e = json_items(a, &preset_shape, p->env_presets.s, &presets);
	if (e == NULL)
		e = secrets_presets(deploy, p->id, &presets);
	if (e == NULL && order->vars != NULL)
		given = *order->vars;
	else if (e == NULL)
		e = vars_read(a, order->sent->env_vars.s, &given);
	if (e != NULL)
		return e;
	if (order->vars == NULL)
		gaps_drop(deploy->faults, &presets, &given);
	env_check(&rules, &given, "/envVars", deploy->faults, &all);
	if (deploy->faults->n > 0)
		return NULL;
	return vars_store(deploy, p->id, &all, out);
}
