/* SPDX-License-Identifier: ISC */
#include "deploy/secrets.h"

#include <string.h>

#include "core/str.h"
#include "crypto/crypto.h"
#include "deploy/stored_secrets.h"
#include "deploy/target.h"
#include "deploy/variables.h"
#include "json/json.h"

#define TEXT_MAX ((size_t)4 << 20)
#define WORK_MAX ((size_t)6 << 20)
#define PREFIX_LEN 16 /* hex digits */

/* A value to store. */
struct secret {
	const char *key; /* its name in the stored object */
	struct env_var var;
};

/* Also the prefix of the names of the trigger's variables. Several triggers may
 * have the same branch or tag, pipeline and environment; those are numbered in
 * order. */
const char *
secrets_trigger_key(struct arena *a, const struct list *triggers, size_t index)
{
	const struct trigger *t = triggers->items;
	char hash[CRYPTO_HASH_HEX];
	const char *what;
	size_t i, same = 0;

	for (i = 0; i < index; i++)
		if (t[i].pipeline_id == t[index].pipeline_id &&
		    t[i].environment_id.n == t[index].environment_id.n &&
		    str_eq(t[i].branch, t[index].branch) &&
		    str_eq(t[i].tag, t[index].tag))
			same++;
	what = arena_printf(a, "%lld %zu %s", (long long)t[index].pipeline_id,
	    same, t[index].branch == NULL ? "" : t[index].branch);
	if (t[index].tag != NULL) /* a pattern contains no blank */
		what = arena_printf(a, "%stag %s", what, t[index].tag);
	if (t[index].environment_id.set)
		what = arena_printf(a, "%s %lld", what,
		    (long long)t[index].environment_id.n);
	crypto_sha256(what, strlen(what), hash);
	return arena_strndup(a, hash, PREFIX_LEN);
}

static const char *
trigger_name(struct arena *a, const char *prefix, const char *key)
{
	return arena_printf(a, "%s %s", prefix, key);
}

/* Parses items that may have faults. */
static const struct err *
items_read(struct stored_secrets *stored, const struct shape *shape,
    const char *text, struct list *out)
{
	return stored->deploy->faults->n > 0 ?
	    json_items_sent(stored->a, shape, text, out) :
	    json_items(stored->a, shape, text, out);
}

/* Reads the presets with their defaults, from the request or else from the
 * database. */
static const struct err *
presets_read(struct stored_secrets *stored, const struct project *p,
    struct list *out)
{
	struct preset *preset;
	const struct err *e;
	bool same;
	size_t i;

	e = items_read(stored, &preset_shape, p->env_presets.s, out);
	if (e != NULL)
		return e;
	preset = out->items;
	if ((e = stored_secrets_fill(stored, out)) != NULL)
		return e;
	for (i = 0; i < out->n; i++) {
		if (preset[i].secret && preset[i].key != NULL &&
		    preset[i].fallback != NULL && *preset[i].fallback == '\0')
			preset[i].fallback = NULL;
		if (preset[i].sealed.text != NULL &&
		    (e = stored_secrets_check(stored, &preset[i],
			 arena_printf(stored->a, "/envPresets/%zu/default", i),
			 &same)) != NULL)
			return e;
	}
	return NULL;
}

/* Replaces null in a trigger by the stored value; adds a fault if there is
 * none. */
static const struct err *
gap_fill(struct stored_secrets *stored, const struct preset *p,
    const char *prefix, const char *pointer, struct env_var *var)
{
	struct faults *f = stored->deploy->faults;
	const struct err *e;
	bool same;

	if (var->secret) {
		e = stored_secrets_find(stored, STORED_TRIGGERS,
		    trigger_name(stored->a, prefix, var->name), var->name,
		    &var->sealed);
		if (e == NULL && var->sealed.text != NULL &&
		    (e = stored_secrets_check(stored, p,
			 fault_pointer(f, pointer, var->name), &same)) ==
			NULL &&
		    !same)
			var->sealed.text = NULL;
		else if (e == NULL && var->sealed.text == NULL)
			faults_add(f, fault_pointer(f, pointer, var->name),
			    "null keeps a stored value, but none is stored; "
			    "give a value");
		return e;
	}
	if (faults_has(f, "/envPresets"))
		return NULL; /* it is unknown which variables are secret */
	faults_add(f, fault_pointer(f, pointer, var->name),
	    "must be a string; null is allowed only to keep a stored secret");
	return NULL;
}

/* Reads the variables of a trigger, secret ones with their stored values, in
 * the scratch arena. Leaves out invalid nulls. */
static const struct err *
trigger_read(struct stored_secrets *stored, struct arena *scratch,
    const struct list *presets, const struct list *triggers, size_t index,
    struct list *out)
{
	const struct trigger *t = triggers->items;
	const char *prefix = secrets_trigger_key(scratch, triggers, index),
		   *pointer = arena_printf(scratch, "/triggers/%zu/envVars",
		       index);
	const struct map *map = &t[index].env_vars;
	const struct pair *pair = map->items;
	const struct preset *p;
	struct env_var *var;
	const struct err *e;
	size_t i;

	var = arena_alloc(scratch, map->n, sizeof(*var));
	*out = (struct list){ .items = var };
	for (i = 0; i < map->n; i++) {
		p = preset_find(presets, pair[i].key);
		*var = (struct env_var){ .name = pair[i].key,
			.value = pair[i].value,
			.secret = p != NULL && p->secret };
		if (var->value == NULL &&
		    (e = gap_fill(stored, p, prefix, pointer, var)) != NULL)
			return e;
		if (var->value != NULL || var->sealed.text != NULL) {
			var++;
			out->n++;
		}
	}
	return NULL;
}

/* The check needs memory for each trigger, but its faults must outlive that. */
static void
vars_check(const struct env_rules *rules, struct arena *scratch,
    const char *pointer, const struct list *vars, struct faults *f)
{
	struct faults more = *f;
	struct list all;

	more.a = scratch;
	env_check(rules, vars, pointer, &more, &all);
	faults_take(f, &more);
}

/* Lists the variables of the trigger's environment. If it cannot be deployed
 * to, the caller or the push reports that. */
static const struct err *
trigger_base(struct stored_secrets *stored, struct arena *scratch,
    int64_t project_id, const struct list *triggers, size_t index,
    struct list *out)
{
	const struct trigger *t = triggers->items;
	struct deploy deploy = *stored->deploy;
	struct environment env = { .id = 0 };
	struct faults ignored;
	const struct err *e = NULL;

	faults_init(&ignored, scratch);
	deploy.faults = &ignored;
	deploy.a = scratch;
	if (project_id != 0)
		e = target_find(&deploy, project_id, t[index].environment_id,
		    &env);
	return e != NULL ?
	    e :
	    target_variables(&deploy, scratch, project_id, &env, out);
}

/* Checks triggers one by one, so that their memory is not needed for all at
 * once. */
static const struct err *
triggers_judge(struct stored_secrets *stored, const struct project *p,
    const struct list *presets)
{
	struct list base;
	/* only maintainers write triggers */
	const struct env_rules rules = { presets, &base,
		variables_rejection(p, ROLE_MAINTAINER), NULL };
	struct faults *f = stored->deploy->faults;
	const bool judged = !faults_has(f, "/envPresets");
	struct arena *scratch = arena_open(WORK_MAX);
	struct list triggers, vars;
	const struct err *e;
	size_t i;

	e = items_read(stored, &trigger_shape, p->triggers.s, &triggers);
	for (i = 0; e == NULL && i < triggers.n; i++) {
		const char *at, *pointer;

		arena_clear(scratch);
		at = arena_printf(scratch, "/triggers/%zu", i);
		pointer = arena_printf(scratch, "%s/envVars", at);
		e = trigger_read(stored, scratch, presets, &triggers, i, &vars);
		if (e == NULL)
			e = trigger_base(stored, scratch, p->id, &triggers, i,
			    &base);
		/* as far as both could be parsed */
		if (e == NULL && judged && !faults_at(f, at) &&
		    !faults_at(f, pointer))
			vars_check(&rules, scratch, pointer, &vars, f);
	}
	arena_close(scratch);
	return e;
}

const struct err *
secrets_judge(struct deploy *deploy, const struct project *p)
{
	struct stored_secrets stored = { .deploy = deploy,
		.project_id = p->id };
	const struct err *e;
	struct list presets;

	stored.a = arena_open(WORK_MAX);
	if ((e = presets_read(&stored, p, &presets)) == NULL)
		e = triggers_judge(&stored, p, &presets);
	arena_close(stored.a);
	return e;
}

static void
size_check(const struct list *secrets, const char *pointer, struct faults *f)
{
	const struct secret *one = secrets->items;
	size_t i, total = 0;

	for (i = 0; i < secrets->n; i++)
		total += strlen(one[i].key) +
		    (one[i].var.value != NULL ? strlen(one[i].var.value) :
						one[i].var.sealed.len);
	if (total > SECRETS_MAX || secrets->n > SECRETS_COUNT)
		faults_add(f, pointer,
		    "must have at most %d secret values with at most %zu KiB "
		    "together",
		    SECRETS_COUNT, SECRETS_MAX / 1024);
}

/* Extracts the secret defaults; `any` is set if the project has secrets at
 * all. */
static const struct err *
defaults_take(struct arena *a, struct list *presets, struct project *p,
    struct list *out, bool *any)
{
	struct preset *preset = presets->items;
	const struct err *e;
	struct secret *one;
	struct buf text;
	size_t i;

	*any = false;
	*out = (struct list){ .n = 0 };
	out->items = one = arena_alloc(a, presets->n, sizeof(*one));
	for (i = 0; i < presets->n; i++) {
		if (!preset[i].secret)
			continue;
		*any = true;
		if (preset[i].fallback != NULL || preset[i].sealed.text != NULL)
			one[out->n++] = (struct secret){ preset[i].key,
				{ .name = preset[i].key,
				    .value = preset[i].fallback,
				    .sealed = preset[i].sealed } };
		preset[i].fallback = NULL;
	}
	buf_init(&text, TEXT_MAX);
	json_write_list(&text, &preset_shape, presets, 0);
	if ((e = buf_check(&text)) == NULL)
		p->env_presets.s = arena_strndup(a, text.data, text.len);
	buf_release(&text);
	return e;
}

/* Extracts the secrets of a trigger and writes the rest. */
static void
trigger_take(struct stored_secrets *stored, struct arena *scratch,
    struct trigger *t, const char *prefix, const struct list *vars,
    struct list *hidden)
{
	const struct env_var *var = vars->items;
	struct secret *secret = hidden->items;
	struct pair *open = arena_alloc(scratch, vars->n, sizeof(*open));
	size_t i;

	t->env_vars = (struct map){ .items = open, .n = vars->n };
	for (i = 0; i < vars->n; i++) {
		open[i] = (struct pair){ var[i].name,
			var[i].secret ? NULL : var[i].value };
		if (!var[i].secret)
			continue;
		if (hidden->n > SECRETS_COUNT)
			break; /* too many; a fault is added later */
		secret[hidden->n] = (struct secret){
			trigger_name(stored->a, prefix, var[i].name), var[i]
		};
		secret[hidden->n].var.name = arena_strdup(stored->a,
		    var[i].name);
		if (var[i].value != NULL)
			secret[hidden->n].var.value = arena_strdup(stored->a,
			    var[i].value);
		hidden->n++;
	}
}

static const struct err *
triggers_take(struct stored_secrets *stored, const struct list *presets,
    struct project *p, struct list *hidden)
{
	struct arena *scratch = arena_open(WORK_MAX);
	struct list triggers, vars;
	const struct err *e;
	struct trigger t;
	struct buf text;
	size_t i;

	buf_init(&text, TEXT_MAX);
	hidden->items = arena_alloc(stored->a, SECRETS_COUNT + 1,
	    sizeof(struct secret));
	e = json_items(stored->a, &trigger_shape, p->triggers.s, &triggers);
	for (i = 0; e == NULL && i < triggers.n; i++) {
		arena_clear(scratch);
		t = ((const struct trigger *)triggers.items)[i];
		e = trigger_read(stored, scratch, presets, &triggers, i, &vars);
		if (e == NULL)
			trigger_take(stored, scratch, &t,
			    secrets_trigger_key(scratch, &triggers, i), &vars,
			    hidden);
		buf_puts(&text, i == 0 ? "[" : ",");
		json_write(&text, &trigger_shape, &t, 0);
	}
	buf_puts(&text, triggers.n == 0 ? "[]" : "]");
	if (e == NULL && (e = buf_check(&text)) == NULL)
		p->triggers.s = arena_strndup(stored->a, text.data, text.len);
	buf_release(&text);
	arena_close(scratch);
	return e;
}

const struct err *
secrets_take(struct deploy *deploy, struct project *p, struct secrets *out)
{
	struct arena *a = deploy->a;
	struct stored_secrets stored = { .deploy = deploy,
		.a = a,
		.project_id = p->id };
	const struct err *e;
	struct list presets;
	bool any;

	(void)memset(out, 0, sizeof(*out));
	if ((e = stored_secrets_read(&stored)) != NULL)
		return e;
	out->stored = stored.values[STORED_DEFAULTS].n > 0 ||
	    stored.values[STORED_TRIGGERS].n > 0;
	if ((e = presets_read(&stored, p, &presets)) != NULL)
		return e;
	e = defaults_take(a, &presets, p, &out->defaults, &any);
	if (e == NULL && any)
		e = triggers_take(&stored, &presets, p, &out->hidden);
	if (e != NULL)
		return e;
	size_check(&out->defaults, "/envPresets", deploy->faults);
	size_check(&out->hidden, "/triggers", deploy->faults);
	return NULL;
}

/* Writes an object of the sealed values; nothing if there are none. */
static const struct err *
values_seal(const struct deploy *deploy, int64_t project_id,
    const struct list *secrets, struct buf *out)
{
	const struct secret *one = secrets->items;
	struct map map = { .n = secrets->n };
	struct pair *pair;
	const struct err *e;
	size_t i;

	if (secrets->n == 0)
		return NULL;
	map.items = pair = arena_alloc(deploy->a, secrets->n, sizeof(*pair));
	for (i = 0; i < secrets->n; i++) {
		pair[i].key = one[i].key;
		e = stored_secrets_seal(deploy, project_id, &one[i].var,
		    &pair[i].value);
		if (e != NULL)
			return e;
	}
	json_write_map(out, &map);
	return buf_check(out);
}

const struct err *
secrets_save(const struct deploy *deploy, const struct secrets *s,
    int64_t project_id)
{
	struct project_secrets row = { .id = project_id };
	struct buf defaults, hidden;
	const struct err *e;

	if (!s->stored && s->defaults.n == 0 && s->hidden.n == 0)
		return NULL;
	buf_init(&defaults, TEXT_MAX);
	buf_init(&hidden, TEXT_MAX);
	e = values_seal(deploy, project_id, &s->defaults, &defaults);
	if (e == NULL)
		e = values_seal(deploy, project_id, &s->hidden, &hidden);
	row.secret_defaults.s = defaults.data;
	row.trigger_secrets.s = hidden.data;
	if (e == NULL)
		e = project_secrets_save(deploy->db, &row);
	buf_release(&defaults);
	buf_release(&hidden);
	return e;
}

const struct err *
secrets_trigger(struct deploy *deploy, int64_t project_id,
    const struct list *triggers, size_t index, struct list *out)
{
	struct arena *a = deploy->a;
	struct stored_secrets stored = { .deploy = deploy,
		.a = a,
		.project_id = project_id };
	const char *prefix = secrets_trigger_key(a, triggers, index);
	const struct trigger *t = triggers->items;
	const struct map *map = &t[index].env_vars;
	const struct pair *pair = map->items;
	const struct err *e;
	struct env_var *var;
	size_t i;

	var = arena_alloc(a, map->n, sizeof(*var));
	*out = (struct list){ .items = var, .n = map->n };
	for (i = 0; i < map->n; i++) {
		var[i] = (struct env_var){ .name = pair[i].key,
			.value = pair[i].value };
		if (var[i].value != NULL)
			continue;
		e = stored_secrets_find(&stored, STORED_TRIGGERS,
		    trigger_name(a, prefix, var[i].name), var[i].name,
		    &var[i].sealed);
		if (e != NULL)
			return e;
		if (var[i].sealed.text == NULL)
			return err_new(ERR_INTERNAL,
			    "project %lld: secret %s of trigger %zu is missing",
			    (long long)project_id, var[i].name, index);
	}
	return NULL;
}
