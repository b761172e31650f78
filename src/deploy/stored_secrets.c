/* SPDX-License-Identifier: ISC */
#include "deploy/stored_secrets.h"

#include <string.h>

#include "core/str.h"
#include "crypto/public_key.h"
#include "json/json.h"
#include "store/env.h"
#include "store/project.h"

#define WORK_MAX ((size_t)6 << 20)
#define NO_KEY                                                                 \
	"The project has secret variables, and the service has no key to "     \
	"encrypt them. An administrator must run \"slipway-admin key\" and "   \
	"reload the service."

const char *
stored_secrets_purpose(struct arena *a, int64_t project_id, const char *name)
{
	return arena_printf(a, ENV_PURPOSE, (long long)project_id, name);
}

const struct err *
stored_secrets_read(struct stored_secrets *stored)
{
	struct project_secrets row;
	const struct err *e;
	struct arena *a;

	if (stored->read || stored->project_id == 0)
		return NULL;
	stored->read = true;
	a = arena_open(WORK_MAX);
	e = project_secrets_find(stored->deploy->db, a, stored->project_id,
	    &row);
	if (e == NULL && row.secret_defaults.s != NULL)
		e = json_map(stored->a, row.secret_defaults.s,
		    &stored->values[STORED_DEFAULTS]);
	if (e == NULL && row.trigger_secrets.s != NULL)
		e = json_map(stored->a, row.trigger_secrets.s,
		    &stored->values[STORED_TRIGGERS]);
	arena_close(a);
	return e;
}

const struct err *
stored_secrets_find(struct stored_secrets *stored, enum stored_kind kind,
    const char *key, const char *name, struct sealed *out)
{
	const struct pair *pair;
	const struct err *e;
	size_t i;

	*out = (struct sealed){ .text = NULL };
	if ((e = stored_secrets_read(stored)) != NULL)
		return e;
	pair = stored->values[kind].items;
	for (i = 0; i < stored->values[kind].n; i++)
		if (pair[i].value != NULL && strcmp(pair[i].key, key) == 0)
			break;
	if (i == stored->values[kind].n)
		return NULL;
	out->text = pair[i].value;
	out->len = public_key_text_length(stored_secrets_purpose(stored->a,
					      stored->project_id, name),
	    out->text);
	return NULL;
}

const struct err *
stored_secrets_fill(struct stored_secrets *stored, struct list *presets)
{
	struct preset *p = presets->items;
	const struct err *e;
	size_t i;

	for (i = 0; i < presets->n; i++) {
		if (!p[i].secret || p[i].fallback != NULL || p[i].key == NULL)
			continue;
		e = stored_secrets_find(stored, STORED_DEFAULTS, p[i].key,
		    p[i].key, &p[i].sealed);
		if (e != NULL)
			return e;
	}
	return NULL;
}

static const struct err *
presets_stored(struct stored_secrets *stored)
{
	struct project old;
	const struct err *e;

	if (stored->presets_read || stored->project_id == 0)
		return NULL;
	e = project_by_id(stored->deploy->db, stored->a, stored->project_id,
	    &old);
	if (e != NULL)
		return e;
	stored->presets_read = true;
	return json_items(stored->a, &preset_shape, old.env_presets.s,
	    &stored->presets);
}

const struct err *
stored_secrets_check(struct stored_secrets *stored, const struct preset *p,
    const char *pointer, bool *same)
{
	const struct preset *old;
	const struct err *e;
	size_t i;

	*same = true;
	if (p->pattern == NULL)
		return NULL;
	if ((e = presets_stored(stored)) != NULL)
		return e;
	old = stored->presets.items;
	for (i = 0; i < stored->presets.n && !str_eq(old[i].key, p->key); i++)
		;
	*same = i < stored->presets.n && str_eq(old[i].pattern, p->pattern);
	if (!*same)
		faults_add(stored->deploy->faults, pointer,
		    "the preset has a new pattern, which the stored secret was "
		    "not checked against; give the value again");
	return NULL;
}

const struct err *
stored_secrets_seal(const struct deploy *deploy, int64_t project_id,
    const struct env_var *var, const char **out)
{
	*out = var->sealed.text;
	if (var->value == NULL)
		return NULL;
	if (deploy->public_key == NULL)
		return err_public(ERR_CONFIG, NO_KEY);
	return public_key_seal(deploy->public_key, deploy->a,
	    stored_secrets_purpose(deploy->a, project_id, var->name),
	    var->value, out);
}
