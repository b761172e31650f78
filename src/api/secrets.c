/* SPDX-License-Identifier: ISC */
#include "api/secrets.h"

#include <string.h>

#include "core/str.h"
#include "store/env.h"

#define TEXT_MAX ((size_t)4 << 20)
#define PREFIX_LEN 16 /* hex digits */
#define NO_KEY                                                                 \
	"The project has secret variables, and the service has no key to "     \
	"seal and open them with: an administrator makes it with "             \
	"\"slipway-admin key\" and restarts the service."

enum kind { DEFAULTS, TRIGGERS, KIND__MAX };

/* What is stored of a project; opened when it is first asked for, so that one
 * whose key is lost can still be given new values. */
struct vault {
	struct req *rq;
	struct arena *a;
	int64_t project_id; /* 0 = a new one: nothing */
	bool read;
	bool open[KIND__MAX];
	struct blob sealed[KIND__MAX];
	struct list pairs[KIND__MAX];
};

static const char *
purpose(struct arena *a, enum kind kind, int64_t project_id)
{
	return arena_printf(a, "%s of project %lld",
	    kind == DEFAULTS ? "defaults" : "triggers", (long long)project_id);
}

static const struct err *
vault_read(struct vault *v)
{
	struct project_secrets row;
	const struct err *e;

	if (v->read || v->project_id == 0)
		return NULL;
	e = project_secrets_find(v->rq->db, v->a, v->project_id, &row);
	if (e != NULL)
		return e;
	v->sealed[DEFAULTS] = row.secret_defaults;
	v->sealed[TRIGGERS] = row.trigger_secrets;
	v->read = true;
	return NULL;
}

static const struct err *
vault_open(struct vault *v, enum kind kind)
{
	const struct err *e;
	char *text;

	if (v->open[kind])
		return NULL;
	if ((e = vault_read(v)) != NULL)
		return e;
	v->open[kind] = true;
	if (v->sealed[kind].data == NULL)
		return NULL;
	if (v->rq->keyring == NULL)
		return err_tell(ERR_UNAVAILABLE, NO_KEY);
	e = unseal(v->rq->keyring, v->a, purpose(v->a, kind, v->project_id),
	    v->sealed[kind], &text);
	if (e != NULL)
		return e;
	return json_pairs(v->a, text, &v->pairs[kind]);
}

/* The stored value of that name; NULL if there is none. */
static const struct err *
vault_find(struct vault *v, enum kind kind, const char *name, const char **out)
{
	const struct json_pair *pair;
	const struct err *e;
	size_t i;

	*out = NULL;
	if ((e = vault_open(v, kind)) != NULL)
		return e;
	pair = v->pairs[kind].items;
	for (i = 0; i < v->pairs[kind].n; i++)
		if (strcmp(pair[i].key, name) == 0)
			*out = pair[i].value;
	return NULL;
}

/* What the names of a trigger's variables begin with.  Several triggers may
 * have the same branch and pipeline: they count in their order. */
static const char *
trigger_prefix(struct arena *a, const struct list *triggers, size_t index)
{
	const struct trigger *t = triggers->items;
	char hash[CRYPTO_HASH_HEX];
	const char *what;
	size_t i, same = 0;

	for (i = 0; i < index; i++)
		if (t[i].pipeline_id == t[index].pipeline_id &&
		    str_eq(t[i].branch, t[index].branch))
			same++;
	what = arena_printf(a, "%lld %zu %s", (long long)t[index].pipeline_id,
	    same, t[index].branch == NULL ? "" : t[index].branch);
	crypto_sha256(what, strlen(what), hash);
	return arena_strndup(a, hash, PREFIX_LEN);
}

static const char *
trigger_name(struct arena *a, const char *prefix, const char *key)
{
	return arena_printf(a, "%s %s", prefix, key);
}

static const struct err *
presets_fill(struct vault *v, struct list *presets)
{
	struct preset *p = presets->items;
	const struct err *e;
	size_t i;

	for (i = 0; i < presets->n; i++) {
		if (!p[i].secret || p[i].fallback != NULL || p[i].key == NULL)
			continue;
		e = vault_find(v, DEFAULTS, p[i].key, &p[i].fallback);
		if (e != NULL)
			return e;
	}
	return NULL;
}

static const struct err *
defaults_merge(struct vault *v, struct secrets *s)
{
	struct preset *p = s->presets.items;
	struct json_pair *pair;
	struct faults *f = &v->rq->faults;
	const struct err *e;
	bool *sent;
	size_t i;

	pair = arena_alloc(v->a, s->presets.n, sizeof(*pair));
	sent = arena_alloc(v->a, s->presets.n, sizeof(*sent));
	s->defaults.items = pair;
	for (i = 0; i < s->presets.n; i++)
		sent[i] = p[i].fallback != NULL;
	if ((e = presets_fill(v, &s->presets)) != NULL)
		return e;
	for (i = 0; i < s->presets.n; i++) {
		if (!p[i].secret || p[i].fallback == NULL || p[i].key == NULL)
			continue;
		if (*p[i].fallback == '\0') {
			p[i].fallback = NULL;
			continue;
		}
		if (!sent[i])
			preset_check_value(&p[i], p[i].fallback,
			    arena_printf(v->a, "/envPresets/%zu/default", i),
			    f);
		pair[s->defaults.n++] = (struct json_pair){ p[i].key,
			p[i].fallback };
	}
	return NULL;
}

static bool
is_secret(const struct list *presets, const char *key)
{
	const struct preset *p = presets->items;
	size_t i;

	for (i = 0; i < presets->n; i++)
		if (str_eq(p[i].key, key))
			return p[i].secret;
	return false;
}

/* What null in a trigger stands for; a fault if that is nothing. */
static const struct err *
gap_fill(struct vault *v, const char *prefix, const char *pointer,
    struct env_var *var)
{
	struct faults *f = &v->rq->faults;
	const struct err *e;

	if (var->secret) {
		e = vault_find(v, TRIGGERS,
		    trigger_name(v->a, prefix, var->name), &var->value);
		if (e != NULL || var->value != NULL)
			return e;
	} else if (faults_has(f, "/envPresets")) {
		return NULL; /* nobody knows what is secret */
	}
	faults_add(f, fault_pointer(f, pointer, var->name), "%s",
	    var->secret ? "no value is stored that null could keep: give one" :
			  "must be a string: null stands for stored secrets "
			  "only");
	return NULL;
}

/* Takes one trigger's variables apart; secret ones join the hidden. */
static const struct err *
trigger_merge(struct vault *v, struct secrets *s, size_t index)
{
	struct trigger *t = s->triggers.items;
	struct json_pair *pair, *hidden = s->hidden.items;
	const char *prefix = trigger_prefix(v->a, &s->triggers, index),
		   *pointer = arena_printf(v->a, "/triggers/%zu/envVars",
		       index);
	struct env_var *var;
	const struct err *e;
	struct list pairs;
	size_t i, n = 0;

	if ((e = json_pairs(v->a, t[index].env_vars.s, &pairs)) != NULL)
		return e;
	pair = pairs.items;
	var = arena_alloc(v->a, pairs.n, sizeof(*var));
	for (i = 0; i < pairs.n; i++) {
		var[n] = (struct env_var){ pair[i].key, pair[i].value,
			is_secret(&s->presets, pair[i].key) };
		if (var[n].value == NULL &&
		    (e = gap_fill(v, prefix, pointer, &var[n])) != NULL)
			return e;
		if (var[n].value == NULL)
			continue;
		if (var[n].secret) {
			hidden[s->hidden.n++] = (struct json_pair){
				trigger_name(v->a, prefix, pair[i].key),
				var[n].value
			};
			pair[i].value = NULL;
		}
		n++;
	}
	s->vars[index] = (struct list){ .items = var, .n = n };
	return secrets_text(v->a, &pairs, &t[index].env_vars.s);
}

static void
size_check(const struct list *pairs, const char *pointer, struct faults *f)
{
	const struct json_pair *pair = pairs->items;
	size_t i, total = 0;

	for (i = 0; i < pairs->n; i++)
		total += strlen(pair[i].key) + strlen(pair[i].value);
	if (total > SECRETS_MAX || pairs->n > SECRETS_COUNT)
		faults_add(f, pointer,
		    "its secret values must be at most %d and have at most "
		    "%zu KiB together",
		    SECRETS_COUNT, SECRETS_MAX / 1024);
}

const struct err *
secrets_merge(struct req *rq, struct arena *a, const struct project *p,
    struct secrets *out)
{
	struct vault v = { .rq = rq, .a = a, .project_id = p->id };
	const struct err *(*items)(struct arena *, const struct shape *,
	    const char *, struct list *);
	const struct trigger *t;
	const struct err *e;
	size_t i, vars = 0;

	(void)memset(out, 0, sizeof(*out));
	if ((e = vault_read(&v)) != NULL)
		return e;
	out->stored = v.sealed[DEFAULTS].data != NULL ||
	    v.sealed[TRIGGERS].data != NULL;
	items = rq->faults.n > 0 ? json_items_sent : json_items;
	e = items(a, &preset_shape, p->env_presets.s, &out->presets);
	if (e == NULL)
		e = items(a, &trigger_shape, p->triggers.s, &out->triggers);
	if (e != NULL || (e = defaults_merge(&v, out)) != NULL)
		return e;
	t = out->triggers.items;
	for (i = 0; i < out->triggers.n; i++)
		if (t[i].env_vars.s != NULL) /* each takes more than "a":"" */
			vars += strlen(t[i].env_vars.s) / strlen("'a':''");
	out->hidden.items = arena_alloc(a, vars, sizeof(struct json_pair));
	out->vars = arena_alloc(a, out->triggers.n, sizeof(*out->vars));
	for (i = 0; i < out->triggers.n; i++)
		if ((e = trigger_merge(&v, out, i)) != NULL)
			return e;
	size_check(&out->defaults, "/envPresets", &rq->faults);
	size_check(&out->hidden, "/triggers", &rq->faults);
	return NULL;
}

static const struct err *
list_text(struct arena *a, const struct shape *shape, const struct list *list,
    const char **out)
{
	const struct err *e;
	struct buf text;

	buf_init(&text, TEXT_MAX);
	json_write_list(&text, shape, list, 0);
	if ((e = buf_check(&text)) == NULL)
		*out = arena_strndup(a, text.data, text.len);
	buf_release(&text);
	return e;
}

const struct err *
secrets_hide(struct arena *a, const struct secrets *s, struct project *p)
{
	struct preset *open;
	const struct err *e;
	struct list presets = s->presets;
	size_t i;

	open = arena_alloc(a, presets.n, sizeof(*open));
	for (i = 0; i < presets.n; i++) {
		open[i] = ((const struct preset *)presets.items)[i];
		if (open[i].secret)
			open[i].fallback = NULL;
	}
	presets.items = open;
	e = list_text(a, &preset_shape, &presets, &p->env_presets.s);
	if (e != NULL)
		return e;
	return list_text(a, &trigger_shape, &s->triggers, &p->triggers.s);
}

const struct err *
secrets_save(struct req *rq, struct arena *a, const struct secrets *s,
    int64_t project_id)
{
	struct project_secrets row = { .id = project_id };
	const struct err *e;

	if (!s->stored && s->defaults.n == 0 && s->hidden.n == 0)
		return NULL;
	e = secrets_seal(rq, a, purpose(a, DEFAULTS, project_id), &s->defaults,
	    &row.secret_defaults);
	if (e == NULL)
		e = secrets_seal(rq, a, purpose(a, TRIGGERS, project_id),
		    &s->hidden, &row.trigger_secrets);
	if (e != NULL)
		return e;
	return project_secrets_save(rq->db, &row);
}

const struct err *
secrets_presets(struct req *rq, struct arena *a, int64_t project_id,
    struct list *presets)
{
	struct vault v = { .rq = rq, .a = a, .project_id = project_id };

	return presets_fill(&v, presets);
}

const struct err *
secrets_trigger(struct req *rq, struct arena *a, int64_t project_id,
    const struct list *triggers, size_t index, struct json_text *out)
{
	struct vault v = { .rq = rq, .a = a, .project_id = project_id };
	const char *prefix = trigger_prefix(a, triggers, index);
	const struct trigger *t = triggers->items;
	const struct err *e;
	struct json_pair *pair;
	struct list pairs;
	size_t i;

	*out = (struct json_text){ .s = NULL };
	if ((e = json_pairs(a, t[index].env_vars.s, &pairs)) != NULL)
		return e;
	pair = pairs.items;
	for (i = 0; i < pairs.n; i++) {
		if (pair[i].value != NULL)
			continue;
		e = vault_find(&v, TRIGGERS,
		    trigger_name(a, prefix, pair[i].key), &pair[i].value);
		if (e != NULL)
			return e;
		if (pair[i].value == NULL)
			return err_new(ERR_INTERNAL,
			    "project %lld: %s of trigger %zu is not stored",
			    (long long)project_id, pair[i].key, index);
	}
	return secrets_text(a, &pairs, &out->s);
}

const struct err *
secrets_text(struct arena *a, const struct list *pairs, const char **out)
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

const struct err *
secrets_seal(struct req *rq, struct arena *a, const char *what,
    const struct list *pairs, struct blob *out)
{
	const struct err *e;
	const char *text;

	*out = (struct blob){ .data = NULL };
	if (pairs->n == 0)
		return NULL;
	if (rq->keyring == NULL)
		return err_tell(ERR_UNAVAILABLE, NO_KEY);
	if ((e = secrets_text(a, pairs, &text)) != NULL)
		return e;
	return seal(rq->keyring, a, what, text, out);
}
