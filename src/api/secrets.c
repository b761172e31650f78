/* SPDX-License-Identifier: ISC */
#include "api/secrets.h"

#include <string.h>

#include "core/str.h"
#include "store/env.h"

#define TEXT_MAX ((size_t)4 << 20)
#define WORK_MAX ((size_t)6 << 20)
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
	bool presets_read;
	struct list presets; /* as they are stored */
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

static const struct preset *
preset_of(const struct list *presets, const char *key)
{
	const struct preset *p = presets->items;
	size_t i;

	for (i = 0; i < presets->n; i++)
		if (str_eq(p[i].key, key))
			return &p[i];
	return NULL;
}

static const struct err *
presets_stored(struct vault *v)
{
	struct project old;
	const struct err *e;

	if (v->presets_read || v->project_id == 0)
		return NULL;
	e = project_by_id(v->rq->db, v->a, v->project_id, &old);
	if (e != NULL)
		return e;
	v->presets_read = true;
	return json_items(v->a, &preset_shape, old.env_presets.s, &v->presets);
}

/* Adds a fault if the preset has another pattern than before: to hold what is
 * stored against it would tell that value bit by bit to whoever chooses the
 * patterns. */
static const struct err *
pattern_check(struct vault *v, const struct preset *p, const char *pointer,
    bool *same)
{
	const struct preset *old;
	const struct err *e;

	*same = true;
	if (p->pattern == NULL)
		return NULL;
	if ((e = presets_stored(v)) != NULL)
		return e;
	old = preset_of(&v->presets, p->key);
	*same = old != NULL && str_eq(old->pattern, p->pattern);
	if (!*same)
		faults_add(&v->rq->faults, pointer,
		    "the pattern is a new one, which no stored secret is held "
		    "against: give the value again");
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

/* What was sent may be faulty in parts. */
static const struct err *
items_read(struct vault *v, const struct shape *shape, const char *text,
    struct list *out)
{
	return v->rq->faults.n > 0 ? json_items_sent(v->a, shape, text, out) :
				     json_items(v->a, shape, text, out);
}

/* The presets with their defaults: what was sent, else what is stored. */
static const struct err *
presets_read(struct vault *v, const struct project *p, struct list *out)
{
	struct preset *preset;
	const struct err *e;
	bool *sent, same;
	size_t i;

	e = items_read(v, &preset_shape, p->env_presets.s, out);
	if (e != NULL)
		return e;
	preset = out->items;
	sent = arena_alloc(v->a, out->n, sizeof(*sent));
	for (i = 0; i < out->n; i++)
		sent[i] = preset[i].fallback != NULL;
	if ((e = presets_fill(v, out)) != NULL)
		return e;
	for (i = 0; i < out->n; i++) {
		if (!preset[i].secret || preset[i].fallback == NULL ||
		    preset[i].key == NULL)
			continue;
		if (*preset[i].fallback == '\0')
			preset[i].fallback = NULL;
		else if (!sent[i] &&
		    (e = pattern_check(v, &preset[i],
			 arena_printf(v->a, "/envPresets/%zu/default", i),
			 &same)) != NULL)
			return e;
	}
	return NULL;
}

/* What null in a trigger stands for; a fault if that is nothing. */
static const struct err *
gap_fill(struct vault *v, const struct preset *p, const char *prefix,
    const char *pointer, struct env_var *var)
{
	struct faults *f = &v->rq->faults;
	const struct err *e;
	bool same;

	if (var->secret) {
		e = vault_find(v, TRIGGERS,
		    trigger_name(v->a, prefix, var->name), &var->value);
		if (e == NULL && var->value != NULL &&
		    (e = pattern_check(v, p,
			 fault_pointer(f, pointer, var->name), &same)) ==
			NULL &&
		    !same)
			var->value = NULL;
		else if (e == NULL && var->value == NULL)
			faults_add(f, fault_pointer(f, pointer, var->name),
			    "no value is stored that null could keep: give "
			    "one");
		return e;
	}
	if (faults_has(f, "/envPresets"))
		return NULL; /* nobody knows what is secret */
	faults_add(f, fault_pointer(f, pointer, var->name),
	    "must be a string: null stands for stored secrets only");
	return NULL;
}

/* One trigger's variables, secret ones with their values, in the scratch
 * arena; what null does not stand for is left out. */
static const struct err *
trigger_read(struct vault *v, struct arena *scratch, const struct list *presets,
    const struct list *triggers, size_t index, struct list *out)
{
	const struct trigger *t = triggers->items;
	const char *prefix = trigger_prefix(scratch, triggers, index),
		   *pointer = arena_printf(scratch, "/triggers/%zu/envVars",
		       index);
	const struct json_pair *pair;
	const struct preset *p;
	struct env_var *var;
	const struct err *e;
	struct list pairs;
	size_t i;

	*out = (struct list){ .n = 0 };
	if ((e = json_pairs(scratch, t[index].env_vars.s, &pairs)) != NULL)
		return e;
	pair = pairs.items;
	var = arena_alloc(scratch, pairs.n, sizeof(*var));
	out->items = var;
	for (i = 0; i < pairs.n; i++) {
		p = preset_of(presets, pair[i].key);
		*var = (struct env_var){ pair[i].key, pair[i].value,
			p != NULL && p->secret };
		if (var->value == NULL &&
		    (e = gap_fill(v, p, prefix, pointer, var)) != NULL)
			return e;
		if (var->value != NULL) {
			var++;
			out->n++;
		}
	}
	return NULL;
}

/* The check needs memory for each trigger, and what it says is to stay. */
static void
vars_check(const struct env_rules *rules, struct arena *scratch,
    const char *pointer, const struct list *vars, struct faults *f)
{
	struct faults more = *f;
	struct list all;
	size_t i;

	more.a = scratch;
	env_check(rules, vars, pointer, &more, &all);
	for (i = f->n; i < more.n; i++)
		if (i < FAULTS_MAX)
			faults_add(f, more.item[i].pointer, "%s",
			    more.item[i].detail);
}

/* Each trigger by itself, so that not all are in memory twice. */
static const struct err *
triggers_judge(struct vault *v, const struct project *p,
    const struct list *presets)
{
	const struct env_rules rules = { presets, p->strict_env };
	struct faults *f = &v->rq->faults;
	const bool judged = !faults_has(f, "/envPresets");
	struct arena *scratch = arena_open(WORK_MAX);
	struct list triggers, vars;
	const struct err *e;
	size_t i;

	e = items_read(v, &trigger_shape, p->triggers.s, &triggers);
	for (i = 0; e == NULL && i < triggers.n; i++) {
		const char *at, *pointer;

		arena_clear(scratch);
		at = arena_printf(scratch, "/triggers/%zu", i);
		pointer = arena_printf(scratch, "%s/envVars", at);
		e = trigger_read(v, scratch, presets, &triggers, i, &vars);
		/* as far as both could be read */
		if (e == NULL && judged && !faults_at(f, at) &&
		    !faults_at(f, pointer))
			vars_check(&rules, scratch, pointer, &vars, f);
	}
	arena_close(scratch);
	return e;
}

const struct err *
secrets_judge(struct req *rq, const struct project *p)
{
	struct vault v = { .rq = rq, .project_id = p->id };
	const struct err *e;
	struct list presets;

	v.a = arena_open(WORK_MAX);
	if ((e = presets_read(&v, p, &presets)) == NULL)
		e = triggers_judge(&v, p, &presets);
	arena_close(v.a);
	return e;
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
		    "its secret values must be at most %d, of at most %zu KiB "
		    "together",
		    SECRETS_COUNT, SECRETS_MAX / 1024);
}

/* Takes out the defaults; says whether there is any secret at all. */
static const struct err *
defaults_take(struct arena *a, struct list *presets, struct project *p,
    struct list *out, bool *any)
{
	struct preset *preset = presets->items;
	struct json_pair *pair;
	const struct err *e;
	struct buf text;
	size_t i;

	*any = false;
	*out = (struct list){ .n = 0 };
	out->items = pair = arena_alloc(a, presets->n, sizeof(*pair));
	for (i = 0; i < presets->n; i++) {
		if (!preset[i].secret)
			continue;
		*any = true;
		if (preset[i].fallback != NULL)
			pair[out->n++] = (struct json_pair){ preset[i].key,
				preset[i].fallback };
		preset[i].fallback = NULL;
	}
	buf_init(&text, TEXT_MAX);
	json_write_list(&text, &preset_shape, presets, 0);
	if ((e = buf_check(&text)) == NULL)
		p->env_presets.s = arena_strndup(a, text.data, text.len);
	buf_release(&text);
	return e;
}

/* Takes out a trigger's secrets and writes what is left. */
static const struct err *
trigger_take(struct vault *v, struct arena *scratch, struct trigger *t,
    const char *prefix, const struct list *vars, struct list *hidden)
{
	const struct env_var *var = vars->items;
	struct json_pair *open, *secret = hidden->items;
	struct list opens = { .n = vars->n };
	size_t i;

	opens.items = open = arena_alloc(scratch, vars->n, sizeof(*open));
	for (i = 0; i < vars->n; i++) {
		open[i] = (struct json_pair){ var[i].name,
			var[i].secret ? NULL : var[i].value };
		if (!var[i].secret)
			continue;
		if (hidden->n > SECRETS_COUNT)
			break; /* too many; it will be told */
		secret[hidden->n++] = (struct json_pair){
			trigger_name(v->a, prefix, var[i].name),
			arena_strdup(v->a, var[i].value)
		};
	}
	return secrets_text(scratch, &opens, &t->env_vars.s);
}

static const struct err *
triggers_take(struct vault *v, const struct list *presets, struct project *p,
    struct list *hidden)
{
	struct arena *scratch = arena_open(WORK_MAX);
	struct list triggers, vars;
	const struct err *e;
	struct trigger t;
	struct buf text;
	size_t i;

	buf_init(&text, TEXT_MAX);
	hidden->items = arena_alloc(v->a, SECRETS_COUNT + 1,
	    sizeof(struct json_pair));
	e = json_items(v->a, &trigger_shape, p->triggers.s, &triggers);
	for (i = 0; e == NULL && i < triggers.n; i++) {
		arena_clear(scratch);
		t = ((const struct trigger *)triggers.items)[i];
		e = trigger_read(v, scratch, presets, &triggers, i, &vars);
		if (e == NULL)
			e = trigger_take(v, scratch, &t,
			    trigger_prefix(scratch, &triggers, i), &vars,
			    hidden);
		buf_puts(&text, i == 0 ? "[" : ",");
		json_write(&text, &trigger_shape, &t, 0);
	}
	buf_puts(&text, triggers.n == 0 ? "[]" : "]");
	if (e == NULL && (e = buf_check(&text)) == NULL)
		p->triggers.s = arena_strndup(v->a, text.data, text.len);
	buf_release(&text);
	arena_close(scratch);
	return e;
}

const struct err *
secrets_take(struct req *rq, struct arena *a, struct project *p,
    struct secrets *out)
{
	struct vault v = { .rq = rq, .a = a, .project_id = p->id };
	const struct err *e;
	struct list presets;
	bool any;

	(void)memset(out, 0, sizeof(*out));
	if ((e = vault_read(&v)) != NULL)
		return e;
	out->stored = v.sealed[DEFAULTS].data != NULL ||
	    v.sealed[TRIGGERS].data != NULL;
	if ((e = presets_read(&v, p, &presets)) != NULL)
		return e;
	e = defaults_take(a, &presets, p, &out->defaults, &any);
	if (e == NULL && any)
		e = triggers_take(&v, &presets, p, &out->hidden);
	if (e != NULL)
		return e;
	size_check(&out->defaults, "/envPresets", &rq->faults);
	size_check(&out->hidden, "/triggers", &rq->faults);
	return faults_check(&rq->faults);
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
