/* SPDX-License-Identifier: ISC */
#include "deploy/target.h"

#include <string.h>

#include "core/branch.h"
#include "core/glob.h"
#include "core/str.h"
#include "crypto/public_key.h"
#include "deploy/shared.h"
#include "deploy/stored_secrets.h"
#include "json/json.h"
#include "store/pipeline.h"

#define TEXT_MAX ((size_t)4 << 20)

const char *
target_pattern_fault(struct arena *a, const char *pattern)
{
	char *like = arena_strdup(a, pattern), *c;
	const char *fault;

	for (c = like; *c != '\0'; c++)
		if (*c == '*' || *c == '?')
			*c = 'x';
	if ((fault = branch_fault(like)) == NULL)
		return NULL;
	return strpbrk(like, " ~^:[\\") == NULL ?
	    fault :
	    "must not contain blanks or any of ~^:[\\; the wildcards of a "
	    "pattern are *, ** and ?";
}

/* The patterns for what the deployment names, as JSON. */
static const char *
patterns_of(const struct environment *env, const struct deployment *d)
{
	return d->tag != NULL ? env->tags.s : env->branches.s;
}

static bool
is_empty(const char *patterns)
{
	return patterns == NULL || str_eq(patterns, "[]");
}

/* Whether the environment accepts everything. Patterns of one kind exclude the
 * other kind, unless that has patterns, too: an environment that is restricted
 * to some branches must not be open to any tag. */
static bool
is_open(const struct environment *env)
{
	return is_empty(env->branches.s) && is_empty(env->tags.s);
}

const struct err *
target_accepts(struct arena *a, const struct environment *env,
    const struct deployment *d, bool *out)
{
	const char *name = d->tag != NULL ? d->tag : d->branch;
	const struct environment_pattern *p;
	const struct err *e;
	struct list list;
	size_t i;

	*out = false;
	if ((e = json_items(a, &environment_pattern_shape, patterns_of(env, d),
		 &list)) != NULL)
		return e;
	p = list.items;
	*out = is_open(env);
	for (i = 0; name != NULL && !*out && i < list.n; i++)
		*out = glob_matches(p[i].text, name);
	return NULL;
}

bool
target_is_unchecked(const struct environment *env, const struct deployment *d)
{
	return d->commit_hash != NULL && !str_eq(d->trigger, "webhook") &&
	    str_eq(d->checkout, PIPELINE_CHECKOUT_NONE) && !is_open(env);
}

/* Why the environment cannot be the target; NULL if it can, or if the error is
 * of another kind. */
static const char *
target_fault(const struct err *e, bool named, bool ours)
{
	if (e != NULL && e->code == ERR_CONFLICT)
		return "is required because the project has several "
		       "environments";
	if (named && (e == NULL ? !ours : e->code == ERR_NOTFOUND))
		return "must be an environment of this project";
	return NULL;
}

const struct err *
target_find(struct deploy *deploy, int64_t project_id,
    struct maybe environment_id, struct environment *out)
{
	int64_t id = environment_id.n;
	const char *fault;
	const struct err *e = NULL;

	(void)memset(out, 0, sizeof(*out));
	if (!environment_id.set)
		e = environment_only(deploy->db, deploy->a, project_id, &id);
	if (e == NULL && (id != 0 || environment_id.set))
		e = environment_by_id(deploy->db, deploy->a, id, out);
	fault = target_fault(e, environment_id.set,
	    out->project_id == project_id);
	if (fault == NULL)
		return e;
	out->id = 0;
	faults_add(deploy->faults, "/environmentId", "%s", fault);
	return NULL;
}

/* Adds a fault: the environment does not accept what the deployment names. */
static void
fault_accept(struct deploy *deploy, const struct environment *env,
    const struct deployment *d)
{
	if (d->tag != NULL)
		faults_add(deploy->faults, "/tag",
		    "is not a tag that the environment %s accepts", env->name);
	else if (d->branch != NULL)
		faults_add(deploy->faults, "/branch",
		    "is not a branch that the environment %s accepts",
		    env->name);
	else
		faults_add(deploy->faults, "/branch",
		    "is required because the environment %s accepts only "
		    "certain branches",
		    env->name);
}

const struct err *
target_choose(struct deploy *deploy, const struct deployment *d,
    struct maybe environment_id, struct environment *out)
{
	const struct err *e;
	bool good;

	e = target_find(deploy, d->project_id, environment_id, out);
	if (e != NULL || out->id == 0 ||
	    faults_has(deploy->faults, "/branch") ||
	    faults_has(deploy->faults, "/tag"))
		return e;
	e = target_accepts(deploy->a, out, d, &good);
	if (e == NULL && !good)
		fault_accept(deploy, out, d);
	return e;
}

/* The stored value of a secret; text NULL = none. */
static struct sealed
stored_find(struct arena *a, const struct map *stored, int64_t project_id,
    const char *key)
{
	const struct pair *pair = stored->items;
	struct sealed found = { .text = NULL };
	size_t i;

	for (i = 0; key != NULL && i < stored->n; i++)
		if (strcmp(pair[i].key, key) == 0)
			found.text = pair[i].value;
	if (found.text != NULL)
		found.len = public_key_text_length(stored_secrets_purpose(a,
						       project_id, key),
		    found.text);
	return found;
}

/* Reads the stored secrets; empty for a new environment. */
static const struct err *
stored_read(struct deploy *deploy, struct arena *a, int64_t id, struct map *out)
{
	struct environment_secrets row;
	const struct err *e;

	*out = (struct map){ .n = 0 };
	if (id == 0)
		return NULL;
	e = environment_secrets_find(deploy->db, a, id, &row);
	return e != NULL ? e : json_map(a, row.secret_values.s, out);
}

static const struct err *
own_variables(struct deploy *deploy, struct arena *a,
    const struct environment *env, struct list *out)
{
	const struct environment_variable *v;
	const struct err *e;
	struct env_var *to;
	struct list list;
	struct map stored;
	size_t i;

	*out = (struct list){ .n = 0 };
	if (env->id == 0)
		return NULL;
	e = json_items(a, &environment_variable_shape, env->variables.s, &list);
	if (e == NULL)
		e = stored_read(deploy, a, env->id, &stored);
	if (e != NULL)
		return e;
	v = list.items;
	out->items = to = arena_alloc(a, list.n, sizeof(*to));
	for (i = 0; i < list.n; i++) {
		to[i] = (struct env_var){ .name = v[i].key,
			.value = v[i].value,
			.secret = v[i].secret };
		if (v[i].secret)
			to[i].sealed = stored_find(a, &stored, env->project_id,
			    v[i].key);
	}
	out->n = list.n;
	return NULL;
}

static bool
has_key(const struct list *vars, const char *key)
{
	const struct env_var *v = vars->items;
	size_t i;

	for (i = 0; i < vars->n; i++)
		if (str_eq(v[i].name, key))
			return true;
	return false;
}

const struct err *
target_variables(struct deploy *deploy, struct arena *a, int64_t project_id,
    const struct environment *env, struct list *out)
{
	struct list own, shared;
	const struct env_var *v;
	const struct err *e;
	struct env_var *to;
	size_t i;

	*out = (struct list){ .n = 0 };
	if ((e = own_variables(deploy, a, env, &own)) != NULL ||
	    (e = shared_variables(deploy, a, project_id, &shared)) != NULL)
		return e;
	to = arena_alloc(a, own.n + shared.n, sizeof(*to));
	out->items = to;
	for (i = 0, v = own.items; i < own.n; i++)
		to[out->n++] = v[i];
	for (i = 0, v = shared.items; i < shared.n; i++)
		if (!has_key(&own, v[i].name))
			to[out->n++] = v[i];
	return NULL;
}

static const struct err *
patterns_judge(struct deploy *deploy, const char *text, const char *pointer)
{
	struct faults *f = deploy->faults;
	const struct environment_pattern *p;
	const char *fault;
	const struct err *e;
	struct list list;
	size_t i;

	if ((e = json_items_sent(deploy->a, &environment_pattern_shape, text,
		 &list)) != NULL)
		return e;
	p = list.items;
	for (i = 0; i < list.n; i++) {
		const char *at = fault_index(f, pointer, i);

		if (p[i].text != NULL && !faults_has(f, at) &&
		    (fault = target_pattern_fault(deploy->a, p[i].text)) !=
			NULL)
			faults_add(f, at, "%s", fault);
	}
	return NULL;
}

static bool
is_earlier(const struct environment_variable *v, size_t i)
{
	size_t k;

	for (k = 0; k < i; k++)
		if (str_eq(v[k].key, v[i].key))
			return true;
	return false;
}

/* Checks one variable; returns its size. */
static size_t
variable_judge(struct deploy *deploy, const struct environment_variable *v,
    const struct sealed *stored, const char *at)
{
	struct faults *f = deploy->faults;
	const char *fault;
	size_t len = v->value != NULL ? strlen(v->value) : stored->len;

	if (v->key == NULL || faults_has(f, at))
		return 0;
	if ((fault = env_name_fault(v->key)) != NULL)
		faults_add(f, fault_pointer(f, at, "key"), "%s", fault);
	at = fault_pointer(f, at, "value");
	if (v->value == NULL && !v->secret)
		faults_add(f, at,
		    "is required; null is allowed only to keep a stored "
		    "secret");
	else if (v->value == NULL && stored->text == NULL)
		faults_add(f, at,
		    "null keeps a stored value, but none is stored; give a "
		    "value");
	else if (len > ENV_VALUE_MAX)
		faults_add(f, at, "must have at most 64 KiB");
	return strlen(v->key) + len + 2;
}

const struct err *
target_judge(struct deploy *deploy, const struct environment *env)
{
	struct faults *f = deploy->faults;
	const struct environment_variable *v;
	const struct err *e;
	struct sealed sealed;
	struct map stored;
	struct list list;
	size_t i, total = 0;

	if ((e = patterns_judge(deploy, env->branches.s, "/branches")) !=
		NULL ||
	    (e = patterns_judge(deploy, env->tags.s, "/tags")) != NULL ||
	    (e = stored_read(deploy, deploy->a, env->id, &stored)) != NULL ||
	    (e = json_items_sent(deploy->a, &environment_variable_shape,
		 env->variables.s, &list)) != NULL)
		return e;
	v = list.items;
	for (i = 0; i < list.n; i++) {
		const char *at = fault_index(f, "/variables", i);

		sealed = stored_find(deploy->a, &stored, env->project_id,
		    v[i].key);
		total += variable_judge(deploy, &v[i], &sealed, at);
		if (v[i].key != NULL && is_earlier(v, i))
			faults_add(f, fault_pointer(f, at, "key"),
			    "is the key of another variable");
	}
	if (total > TARGET_TOTAL_MAX)
		faults_add(f, "/variables",
		    "all names and values together must have at most %zu KiB",
		    TARGET_TOTAL_MAX / 1024);
	return NULL;
}

/* Encrypts new values, keeps stored ones, and removes them from the list. */
static const struct err *
values_take(struct deploy *deploy, const struct environment *env,
    struct list *list, const struct map *stored, struct map *out)
{
	struct environment_variable *v = list->items;
	struct pair *pair = arena_alloc(deploy->a, list->n, sizeof(*pair));
	const struct err *e = NULL;
	struct env_var var;
	size_t i;

	*out = (struct map){ .items = pair };
	for (i = 0; e == NULL && i < list->n; i++) {
		if (!v[i].secret)
			continue;
		var = (struct env_var){ .name = v[i].key,
			.value = v[i].value,
			.sealed = stored_find(deploy->a, stored,
			    env->project_id, v[i].key),
			.secret = true };
		pair[out->n].key = v[i].key;
		e = stored_secrets_seal(deploy, env->project_id, &var,
		    &pair[out->n++].value);
		v[i].value = NULL;
	}
	return e;
}

const struct err *
target_seal(struct deploy *deploy, struct environment *env,
    struct environment_secrets *out)
{
	struct map stored, sealed;
	const struct err *e;
	struct buf open, hidden;
	struct list list;

	*out = (struct environment_secrets){ .id = env->id };
	if ((e = json_items(deploy->a, &environment_variable_shape,
		 env->variables.s, &list)) != NULL ||
	    (e = stored_read(deploy, deploy->a, env->id, &stored)) != NULL ||
	    (e = values_take(deploy, env, &list, &stored, &sealed)) != NULL)
		return e;
	buf_init(&open, TEXT_MAX);
	buf_init(&hidden, TEXT_MAX);
	json_write_list(&open, &environment_variable_shape, &list, 0);
	json_write_map(&hidden, &sealed);
	if ((e = buf_check(&open)) == NULL &&
	    (e = buf_check(&hidden)) == NULL) {
		env->variables.s = arena_strndup(deploy->a, open.data,
		    open.len);
		if (sealed.n > 0)
			out->secret_values.s = arena_strndup(deploy->a,
			    hidden.data, hidden.len);
	}
	buf_release(&open);
	buf_release(&hidden);
	return e;
}
