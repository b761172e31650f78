/* SPDX-License-Identifier: ISC */
#include "api/environment.h"

#include "store/env.h"

#define TEXT_MAX ((size_t)4 << 20)

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

static const struct err *
pairs_text(struct arena *a, const struct list *pairs, const char **out)
{
	const struct err *e;
	struct buf text;

	*out = NULL;
	buf_init(&text, TEXT_MAX);
	json_write_pairs(&text, pairs);
	if ((e = buf_check(&text)) == NULL)
		*out = arena_strndup(a, text.data, text.len);
	buf_release(&text);
	return e;
}

static const struct err *
secrets_seal(struct req *rq, struct arena *a, int64_t project_id,
    const struct list *secrets, struct blob *out)
{
	const struct err *e;
	const char *text;

	if (secrets->n == 0)
		return NULL;
	if (rq->keyring == NULL)
		return err_tell(ERR_UNAVAILABLE,
		    "The project has secret variables, and the service has no "
		    "key to seal them with: an administrator makes it with "
		    "\"slipway-admin key\" and restarts the service.");
	if ((e = pairs_text(a, secrets, &text)) != NULL)
		return e;
	return seal(rq->keyring, a,
	    arena_printf(a, DEPLOYMENT_PURPOSE, (long long)project_id), text,
	    out);
}

/* Splits the variables: secret ones stand in the open as null. */
static const struct err *
vars_store(struct req *rq, struct arena *a, int64_t project_id,
    const struct list *vars, struct deployment *out)
{
	const struct env_var *v = vars->items;
	struct json_pair *open, *secret;
	struct list opens, secrets = { .n = 0 };
	const struct err *e;
	size_t i;

	open = arena_alloc(a, vars->n, sizeof(*open));
	secret = arena_alloc(a, vars->n, sizeof(*secret));
	opens = (struct list){ .items = open, .n = vars->n };
	secrets.items = secret;
	for (i = 0; i < vars->n; i++) {
		open[i].key = v[i].name;
		open[i].value = v[i].secret ? NULL : v[i].value;
		if (v[i].secret)
			secret[secrets.n++] = (struct json_pair){ v[i].name,
				v[i].value };
	}
	if ((e = pairs_text(a, &opens, &out->env_vars.s)) != NULL)
		return e;
	return secrets_seal(rq, a, project_id, &secrets, &out->secret_vars);
}

/* Reads presets and variables, and holds these against those. */
static const struct err *
vars_check(struct arena *a, const struct project *p, struct json_text vars,
    const char *pointer, struct faults *f, struct list *out)
{
	struct list presets, given;
	const struct env_rules rules = { .presets = &presets,
		.strict = p->strict_env };
	const struct err *e;

	*out = (struct list){ .items = NULL };
	e = json_items(a, &preset_shape, p->env_presets.s, &presets);
	if (e != NULL)
		return e;
	if ((e = vars_read(a, vars.s, &given)) != NULL)
		return e;
	env_check(&rules, &given, pointer, f, out);
	return NULL;
}

const struct err *
environment_make(struct req *rq, struct arena *a, const struct project *p,
    struct json_text vars, struct deployment *out)
{
	const struct err *e;
	struct list all;

	e = vars_check(a, p, vars, "/envVars", &rq->faults, &all);
	if (e != NULL || rq->faults.n > 0)
		return e;
	return vars_store(rq, a, p->id, &all, out);
}

const struct err *
environment_check(struct arena *a, const struct project *p,
    struct json_text vars, const char *pointer, struct faults *f)
{
	const struct env_var *v;
	const struct err *e;
	struct list all;
	size_t i;

	if ((e = vars_check(a, p, vars, pointer, f, &all)) != NULL)
		return e;
	v = all.items;
	for (i = 0; i < all.n; i++)
		if (v[i].secret)
			faults_add(f, fault_pointer(f, pointer, v[i].name),
			    "is secret, and would stand here in the open");
	return NULL;
}
