/* SPDX-License-Identifier: ISC */
#include "deploy/variables.h"

#include "core/str.h"
#include "deploy/stored_secrets.h"
#include "json/json.h"
#include "store/env.h"

/* limit of a column, if JSON escapes every byte as \u0001 */
#define TEXT_MAX ((size_t)4 << 20)

static const struct env_var *
var_of(const struct list *vars, const char *name)
{
	const struct env_var *v = vars->items;
	size_t i;

	for (i = 0; i < vars->n; i++)
		if (str_eq(v[i].name, name))
			return &v[i];
	return NULL;
}

static bool
is_secret(const struct list *presets, const struct list *base, const char *key)
{
	const struct env_var *v = var_of(base, key);
	const struct preset *p = preset_find(presets, key);

	return (v != NULL && v->secret) || (p != NULL && p->secret);
}

/* Converts the map to variables. Null is what a deployment shows in place of a
 * secret, so it counts as absent. */
static void
vars_take(struct deploy *deploy, const struct env_rules *rules,
    const struct map *sent, struct list *out)
{
	struct faults *f = deploy->faults;
	struct env_var *v = arena_alloc(deploy->a, sent->n, sizeof(*v));
	const struct pair *one;
	size_t i;

	*out = (struct list){ .items = v };
	for (i = 0; i < sent->n; i++) {
		one = &sent->items[i];
		if (one->value != NULL)
			v[out->n++] = (struct env_var){ .name = one->key,
				.value = one->value };
		else if (!is_secret(rules->presets, rules->base, one->key))
			faults_add(f, fault_pointer(f, "/envVars", one->key),
			    "must be a string; null is allowed for secrets "
			    "only");
	}
}

static const struct err *
map_text(struct arena *a, const struct map *map, const char **out)
{
	const struct err *e;
	struct buf text;

	buf_init(&text, TEXT_MAX);
	json_write_map(&text, map);
	if ((e = buf_check(&text)) == NULL)
		*out = arena_strndup(a, text.data, text.len);
	buf_release(&text);
	return e;
}

/* Fills in the row's two columns: one with null for secret variables, one with
 * the secrets, sealed for the dispatcher. */
static const struct err *
vars_store(const struct deploy *deploy, int64_t project_id,
    const struct list *vars, struct deployment *out)
{
	struct arena *a = deploy->a;
	const struct env_var *v = vars->items;
	struct map open = { .n = vars->n }, secret = { .n = 0 };
	const struct err *e = NULL;
	size_t i;

	open.items = arena_alloc(a, vars->n, sizeof(struct pair));
	secret.items = arena_alloc(a, vars->n, sizeof(struct pair));
	for (i = 0; i < vars->n && e == NULL; i++) {
		open.items[i].key = v[i].name;
		open.items[i].value = v[i].secret ? NULL : v[i].value;
		if (!v[i].secret)
			continue;
		secret.items[secret.n].key = v[i].name;
		e = stored_secrets_seal(deploy, project_id, &v[i],
		    &secret.items[secret.n++].value);
	}
	if (e != NULL || (e = map_text(a, &open, &out->env_vars.s)) != NULL ||
	    secret.n == 0)
		return e;
	return map_text(a, &secret, &out->secret_vars.s);
}

/* Fills in the keys that the request set itself. */
static const struct err *
sent_store(struct arena *a, const struct list *given, struct deployment *out)
{
	const struct env_var *v = given->items;
	const struct err *e;
	struct buf text;
	size_t i;

	buf_init(&text, TEXT_MAX);
	buf_putc(&text, '[');
	for (i = 0; i < given->n; i++) {
		if (i > 0)
			buf_putc(&text, ',');
		json_string(&text, v[i].name);
	}
	buf_putc(&text, ']');
	if ((e = buf_check(&text)) == NULL)
		out->env_vars_sent.s = arena_strndup(a, text.data, text.len);
	buf_release(&text);
	return e;
}

const char *
variables_role(enum role role)
{
	return role >= ROLE_MAINTAINER ? "maintainer" : "deployer";
}

const char *
variables_rejection(const struct project *p, enum role role)
{
	if (str_eq(p->extra_env, ENV_EXTRA_NOBODY))
		return "is not named by the project's envPresets, and the "
		       "project accepts no other variables (extraEnv is "
		       "nobody)";
	if (role < ROLE_MAINTAINER &&
	    !str_eq(p->extra_env, ENV_EXTRA_DEPLOYERS))
		return "is not among the project's envPresets, and only a "
		       "maintainer may set other variables (extraEnv is "
		       "maintainers)";
	return NULL;
}

/* Why the role may not set variables that steer programs; NULL if it may. */
static const char *
variables_steering(enum role role)
{
	return role >= ROLE_MAINTAINER ?
	    NULL :
	    "steers programs that the steps run, and is not among the "
	    "project's envPresets: ask a maintainer to add it there, or to the "
	    "environment";
}

/* The sealed value of a variable; NULL = none. */
static const char *
sealed_of(const struct map *sealed, const char *key)
{
	size_t i;

	for (i = 0; i < sealed->n; i++)
		if (str_eq(sealed->items[i].key, key))
			return sealed->items[i].value;
	return NULL;
}

/* Whether the base gives the variable the value that a deployment has. A sealed
 * value can be compared as text, because a deployment gets a copy of it. */
static bool
is_of_base(const struct env_var *v, const struct pair *shown,
    const struct map *sealed)
{
	if (v == NULL || v->secret != (shown->value == NULL))
		return false;
	return v->secret ?
	    str_eq(v->sealed.text, sealed_of(sealed, shown->key)) :
	    str_eq(v->value, shown->value);
}

/* Whether the preset rejects the value; of a secret nothing is known.  All values
 * of a deployment share the work of patterns. */
static bool
is_rejected(struct faults *faults, const struct preset *p, const char *value)
{
	struct faults found;

	faults_init(&found, faults->a);
	found.work = faults->work;
	if (value != NULL)
		preset_check_value(p, value, "", &found);
	faults->work = found.work;
	return found.n > 0;
}

/* Why a deployer may not set the variable to that value now, after "sets"; NULL
 * if the deployer may. */
static const char *
pair_fault(const struct deploy *deploy, const struct project *p,
    const struct list *presets, const struct pair *pair)
{
	struct arena *a = deploy->a;
	const struct preset *preset = preset_find(presets, pair->key);

	if (preset == NULL &&
	    (variables_rejection(p, ROLE_DEPLOYER) != NULL ||
		env_name_steers(pair->key)))
		return arena_printf(a,
		    "%.128s, which the project's envPresets do not name",
		    pair->key);
	if (preset != NULL && is_rejected(deploy->faults, preset, pair->value))
		return arena_printf(a,
		    "%.128s to a value that the project's envPresets no longer "
		    "accept",
		    pair->key);
	return NULL;
}

/* Gives a variable the secret value of the base. */
static void
pair_replace(struct pair *shown, const struct env_var *v, struct map *sealed)
{
	size_t i;

	shown->value = NULL;
	for (i = 0; i < sealed->n; i++)
		if (str_eq(sealed->items[i].key, shown->key))
			break;
	if (i == sealed->n)
		sealed->n++;
	sealed->items[i] = (struct pair){ shown->key, v->sealed.text };
}

/* Reads the variables of a deployment; `sealed` has room for all of them. */
static const struct err *
vars_read(const struct deploy *deploy, const struct deployment *d,
    struct map *open, struct map *sealed)
{
	struct json_text text;
	const struct err *e;
	struct pair *room;
	size_t i;

	if ((e = deployment_secrets(deploy->db, deploy->a, d->id, &text)) !=
		NULL ||
	    (e = json_map(deploy->a, text.s, sealed)) != NULL ||
	    (e = json_map(deploy->a, d->env_vars.s, open)) != NULL)
		return e;
	room = arena_alloc(deploy->a, open->n + sealed->n, sizeof(*room));
	for (i = 0; i < sealed->n; i++)
		room[i] = sealed->items[i];
	sealed->items = room;
	return NULL;
}

const struct err *
variables_repeat(const struct deploy *deploy, const struct project *p,
    const struct list *base, struct deployment *d, const char **out)
{
	const struct env_var *v;
	const struct err *e;
	struct map open, sealed;
	struct list presets;
	bool changed = false;
	size_t i;

	*out = NULL;
	if ((e = json_items(deploy->a, &preset_shape, p->env_presets.s,
		 &presets)) != NULL ||
	    (e = vars_read(deploy, d, &open, &sealed)) != NULL)
		return e;
	for (i = 0; i < open.n; i++) {
		v = var_of(base, open.items[i].key);
		if (is_of_base(v, &open.items[i], &sealed) ||
		    (*out = pair_fault(deploy, p, &presets, &open.items[i])) ==
			NULL)
			continue;
		if (v == NULL || v->sealed.text == NULL)
			return NULL;
		*out = NULL;
		pair_replace(&open.items[i], v, &sealed);
		changed = true;
	}
	if (!changed)
		return NULL;
	if ((e = map_text(deploy->a, &open, &d->env_vars.s)) != NULL)
		return e;
	return map_text(deploy->a, &sealed, &d->secret_vars.s);
}

const struct err *
variables_make(struct deploy *deploy, const struct project *p,
    const struct list *base, const struct deploy_order *order,
    struct deployment *out)
{
	struct stored_secrets stored = { .deploy = deploy,
		.a = deploy->a,
		.project_id = p->id };
	struct list presets, given, all;
	const struct env_rules rules = { .presets = &presets,
		.base = base,
		.rejection = variables_rejection(p, order->role),
		.steering = variables_steering(order->role) };
	const struct err *e;

	if (faults_at(deploy->faults, "/envVars"))
		return NULL; /* present, but not valid */
	e = json_items(deploy->a, &preset_shape, p->env_presets.s, &presets);
	if (e == NULL)
		e = stored_secrets_fill(&stored, &presets);
	if (e != NULL)
		return e;
	if (order->vars != NULL)
		given = *order->vars;
	else
		vars_take(deploy, &rules, &order->sent->env_vars, &given);
	env_check(&rules, &given, "/envVars", deploy->faults, &all);
	if (deploy->faults->n > 0)
		return NULL;
	if ((e = sent_store(deploy->a, &given, out)) != NULL)
		return e;
	return vars_store(deploy, p->id, &all, out);
}
