/* SPDX-License-Identifier: ISC */
#include "store/env.h"

#include <string.h>

#include "core/str.h"

#define NAME_SHOWN ((size_t)256) /* longer ones are cut in faults */

const char *const env_extra_values[] = { ENV_EXTRA_NOBODY,
	ENV_EXTRA_MAINTAINERS, ENV_EXTRA_DEPLOYERS, NULL };

/* Names that would affect the programs that run the steps. A trailing `*`
 * matches any suffix. */
static const char *const refused[] = {
	"BASH",
	"BASHOPTS",
	"BASH_*",
	"CDPATH",
	"CI",
	"ENV",
	"GCONV_PATH",
	"GIT_*",
	"GLIBC_TUNABLES",
	"GLOBIGNORE",
	"HOME",
	"HOSTALIASES",
	"IFS",
	"JAVA_TOOL_OPTIONS",
	"JDK_JAVA_OPTIONS",
	"LD_*",
	"LOCALDOMAIN",
	"LOCPATH",
	"MALLOC_*",
	"NLSPATH",
	"NODE_OPTIONS",
	"OPENSSL_CONF",
	"OPENSSL_ENGINES",
	"OPENSSL_MODULES",
	"PATH",
	"PERL*",
	"PHPRC",
	"PHP_INI_SCAN_DIR",
	"PROMPT_COMMAND",
	"PS4",
	"PYTHON*",
	"RES_OPTIONS",
	"RUBY*",
	"SHELL",
	"SHELLOPTS",
	"SLIPWAY_*",
	"SSH_ASKPASS*",
	"XDG_CONFIG_HOME",
	"ZDOTDIR",
	"_JAVA_OPTIONS",
	NULL,
};

static bool
is_refused(const char *name)
{
	size_t i, len;

	for (i = 0; refused[i] != NULL; i++) {
		len = strlen(refused[i]);
		if (refused[i][len - 1] == '*' ?
			strncmp(name, refused[i], len - 1) == 0 :
			strcmp(name, refused[i]) == 0)
			return true;
	}
	return false;
}

const char *
env_name_fault(const char *name)
{
	if (!str_matches(name, ENV_NAME_ERE))
		return "must start with a letter or _, contain only letters, "
		       "digits and _, and have at most 128 characters";
	if (is_refused(name))
		return "is a name that controls the shell, the loader, git or "
		       "this service; choose another";
	return NULL;
}

/* The pointer to a variable; a name that is too long is left out of it. */
static const char *
place(struct faults *f, const char *pointer, const char *name)
{
	return strlen(name) > NAME_SHOWN ? pointer :
					   fault_pointer(f, pointer, name);
}

static void
fault(struct faults *f, const char *pointer, const char *name,
    const char *detail)
{
	faults_add(f, place(f, pointer, name), "%.40s%s%s",
	    strlen(name) > NAME_SHOWN ? name : "",
	    strlen(name) > NAME_SHOWN ? "… " : "", detail);
}

static size_t
length(const struct env_var *v)
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
			fault(f, pointer, v[i].name, wrong);
		len = length(&v[i]);
		if (len > ENV_VALUE_MAX)
			fault(f, pointer, v[i].name,
			    "must have at most 64 KiB");
		total += strlen(v[i].name) + len + 2;
	}
	if (total > ENV_TOTAL_MAX)
		faults_add(f, pointer,
		    "all names and values together must have at most 512 KiB");
}

static const struct preset *
preset_of(const struct list *presets, const char *name)
{
	const struct preset *p = presets->items;
	size_t i;

	for (i = 0; i < presets->n; i++)
		if (strcmp(p[i].key, name) == 0)
			return &p[i];
	return NULL;
}

static bool
is_given(const struct list *vars, const char *name)
{
	const struct env_var *v = vars->items;
	size_t i;

	for (i = 0; i < vars->n; i++)
		if (strcmp(v[i].name, name) == 0)
			return true;
	return false;
}

void
env_check(const struct env_rules *rules, const struct list *given,
    const char *pointer, struct faults *f, struct list *out)
{
	const struct env_var *v = given->items;
	const struct preset *presets = rules->presets->items, *p;
	struct env_var *vars;
	size_t i, n = 0;

	vars = arena_alloc(f->a, given->n + rules->presets->n, sizeof(*vars));
	env_check_names(given, pointer, f);
	for (i = 0; i < given->n; i++) {
		vars[n] = v[i];
		p = preset_of(rules->presets, v[i].name);
		vars[n++].secret = v[i].value == NULL ||
		    (p != NULL && p->secret);
		if (p != NULL && v[i].value == NULL)
			preset_check_sealed(p, v[i].sealed,
			    fault_pointer(f, pointer, v[i].name), f);
		else if (p != NULL)
			preset_check_value(p, v[i].value,
			    fault_pointer(f, pointer, v[i].name), f);
		else if (rules->refusal != NULL)
			fault(f, pointer, v[i].name, rules->refusal);
	}
	for (i = 0; i < rules->presets->n; i++) {
		p = &presets[i];
		if (is_given(given, p->key))
			continue;
		if (p->fallback != NULL || p->sealed.text != NULL)
			vars[n++] = (struct env_var){ .name = p->key,
				.value = p->fallback,
				.sealed = p->sealed,
				.secret = p->secret };
		else if (p->required &&
		    !faults_has(f, fault_pointer(f, pointer, p->key)))
			fault(f, pointer, p->key, "is required");
	}
	*out = (struct list){ .items = vars, .n = n };
}
