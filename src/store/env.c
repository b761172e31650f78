/* SPDX-License-Identifier: ISC */
#include "store/env.h"

#include <string.h>

#include "core/str.h"

#define NAME_SHOWN ((size_t)256) /* longer ones are cut in faults */

const char *const env_extra_values[] = { ENV_EXTRA_NOBODY,
	ENV_EXTRA_MAINTAINERS, ENV_EXTRA_DEPLOYERS, NULL };

/* The pointer to a variable; a name that is too long is left out of it. */
static const char *
variable_pointer(struct faults *f, const char *pointer, const char *name)
{
	return strlen(name) > NAME_SHOWN ? pointer :
					   fault_pointer(f, pointer, name);
}

static void
variable_fault(struct faults *f, const char *pointer, const char *name,
    const char *detail)
{
	const bool is_long = strlen(name) > NAME_SHOWN;

	faults_add(f, variable_pointer(f, pointer, name), "%s%s%s",
	    is_long ? str_clip(f->a, name, 40) : "", is_long ? " " : "",
	    detail);
}

static size_t
variable_length(const struct env_var *v)
{
	return v->value != NULL ? strlen(v->value) : v->sealed.len;
}

void
env_check_names(const struct list *vars, const char *pointer, struct faults *f)
{
	const struct env_var *v = vars->items;
	size_t i, len, total = 0;
	const char *wrong;

	for (i = 0; i < vars->n; i++) {
		if ((wrong = env_name_fault(v[i].name)) != NULL)
			variable_fault(f, pointer, v[i].name, wrong);
		len = variable_length(&v[i]);
		if (len > ENV_VALUE_MAX)
			variable_fault(f, pointer, v[i].name,
			    "must have at most 64 KiB");
		total += strlen(v[i].name) + len + 2;
	}
	if (total > ENV_TOTAL_MAX)
		faults_add(f, pointer,
		    "all names and values together must have at most 512 KiB");
}

static const struct env_var *
var_of(const struct list *vars, const char *name)
{
	const struct env_var *v = vars->items;
	size_t i;

	for (i = 0; i < vars->n; i++)
		if (strcmp(v[i].name, name) == 0)
			return &v[i];
	return NULL;
}

/* Appends the variables of the base that were not given. */
static void
base_take(const struct env_rules *rules, const struct list *base,
    const char *pointer, struct faults *f, struct list *out)
{
	const struct env_var *v = base->items;
	const struct list given = *out;
	struct env_var *to = out->items;
	const struct preset *p;
	size_t i, total = 0;

	for (i = 0; i < base->n; i++) {
		if (var_of(&given, v[i].name) != NULL)
			continue;
		p = preset_find(rules->presets, v[i].name);
		to[out->n] = v[i];
		to[out->n++].secret = v[i].secret || (p != NULL && p->secret);
		if (p != NULL)
			preset_check_sealed(p,
			    (struct sealed){ .len = variable_length(&v[i]) },
			    fault_pointer(f, pointer, v[i].name), f);
	}
	for (i = 0; i < out->n; i++)
		total += strlen(to[i].name) + variable_length(&to[i]) + 2;
	if (out->n > given.n &&
	    (total > ENV_TOTAL_MAX || out->n > ENV_COUNT_MAX))
		faults_add(f, pointer,
		    "together with the variables of the environment and shared "
		    "ones there must be at most %d, with at most 512 KiB",
		    ENV_COUNT_MAX);
}

/* Appends the defaults of presets that have no value yet. */
static void
defaults_take(const struct env_rules *rules, const char *pointer,
    struct faults *f, struct list *out)
{
	const struct preset *p = rules->presets->items;
	const struct list given = *out;
	struct env_var *to = out->items;
	size_t i;

	for (i = 0; i < rules->presets->n; i++, p++) {
		if (var_of(&given, p->key) != NULL)
			continue;
		if (p->fallback != NULL || p->sealed.text != NULL)
			to[out->n++] = (struct env_var){ .name = p->key,
				.value = p->fallback,
				.sealed = p->sealed,
				.secret = p->secret };
		else if (p->required &&
		    !faults_has(f, fault_pointer(f, pointer, p->key)))
			variable_fault(f, pointer, p->key, "is required");
	}
}

void
env_check(const struct env_rules *rules, const struct list *given,
    const char *pointer, struct faults *f, struct list *out)
{
	const struct list none = { .n = 0 };
	const struct list *base = rules->base != NULL ? rules->base : &none;
	const struct env_var *v = given->items, *below;
	const struct preset *p;
	struct env_var *vars;
	size_t i;

	vars = arena_alloc(f->a, given->n + base->n + rules->presets->n,
	    sizeof(*vars));
	*out = (struct list){ .items = vars, .n = given->n };
	env_check_names(given, pointer, f);
	for (i = 0; i < given->n; i++) {
		vars[i] = v[i];
		p = preset_find(rules->presets, v[i].name);
		below = var_of(base, v[i].name);
		vars[i].secret = v[i].value == NULL ||
		    (p != NULL && p->secret) ||
		    (below != NULL && below->secret);
		if (p != NULL && v[i].value == NULL)
			preset_check_sealed(p, v[i].sealed,
			    fault_pointer(f, pointer, v[i].name), f);
		else if (p != NULL)
			preset_check_value(p, v[i].value,
			    fault_pointer(f, pointer, v[i].name), f);
		else if (rules->rejection != NULL)
			variable_fault(f, pointer, v[i].name, rules->rejection);
		else if (rules->steering != NULL && env_name_steers(v[i].name))
			variable_fault(f, pointer, v[i].name, rules->steering);
	}
	base_take(rules, base, pointer, f, out);
	defaults_take(rules, pointer, f, out);
}
