/* SPDX-License-Identifier: ISC */
#include "deploy/vault.h"

#include <string.h>

#include "core/str.h"
#include "crypto/public_key.h"
#include "json/json.h"
#include "store/env.h"
#include "store/project.h"

#define WORK_MAX ((size_t)6 << 20)

const char *
vault_purpose(struct arena *a, int64_t project_id, const char *name)
{
	return arena_printf(a, ENV_PURPOSE, (long long)project_id, name);
}

const struct err *
vault_read(struct vault *v)
{
	struct project_secrets row;
	const struct err *e;
	struct arena *a;

	if (v->read || v->project_id == 0)
		return NULL;
	v->read = true;
	a = arena_open(WORK_MAX);
	e = project_secrets_find(v->deploy->db, a, v->project_id, &row);
	if (e == NULL && row.secret_defaults.s != NULL)
		e = json_map(v->a, row.secret_defaults.s,
		    &v->stored[VAULT_DEFAULTS]);
	if (e == NULL && row.trigger_secrets.s != NULL)
		e = json_map(v->a, row.trigger_secrets.s,
		    &v->stored[VAULT_TRIGGERS]);
	arena_close(a);
	return e;
}

const struct err *
vault_find(struct vault *v, enum vault_kind kind, const char *key,
    const char *name, struct sealed *out)
{
	const struct pair *pair;
	const struct err *e;
	size_t i;

	*out = (struct sealed){ .text = NULL };
	if ((e = vault_read(v)) != NULL)
		return e;
	pair = v->stored[kind].items;
	for (i = 0; i < v->stored[kind].n; i++)
		if (pair[i].value != NULL && strcmp(pair[i].key, key) == 0)
			break;
	if (i == v->stored[kind].n)
		return NULL;
	out->text = pair[i].value;
	out->len = public_key_text_length(vault_purpose(v->a, v->project_id,
					      name),
	    out->text);
	return NULL;
}

static const struct err *
presets_stored(struct vault *v)
{
	struct project old;
	const struct err *e;

	if (v->presets_read || v->project_id == 0)
		return NULL;
	e = project_by_id(v->deploy->db, v->a, v->project_id, &old);
	if (e != NULL)
		return e;
	v->presets_read = true;
	return json_items(v->a, &preset_shape, old.env_presets.s, &v->presets);
}

const struct err *
vault_check(struct vault *v, const struct preset *p, const char *pointer,
    bool *same)
{
	const struct preset *old;
	const struct err *e;
	size_t i;

	*same = true;
	if (p->pattern == NULL)
		return NULL;
	if ((e = presets_stored(v)) != NULL)
		return e;
	old = v->presets.items;
	for (i = 0; i < v->presets.n && !str_eq(old[i].key, p->key); i++)
		;
	*same = i < v->presets.n && str_eq(old[i].pattern, p->pattern);
	if (!*same)
		faults_add(v->deploy->faults, pointer,
		    "the pattern is a new one, which no stored secret is held "
		    "against: give the value again");
	return NULL;
}
