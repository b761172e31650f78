/* SPDX-License-Identifier: ISC */
/* The project itself, and its triggers, which name pipelines and
 * environments. */
#include "api/part.h"
#include "core/str.h"
#include "store/named.h"

static bool
has_gap(const struct trigger *t, const char *key)
{
	size_t i;

	for (i = 0; i < t->env_vars.n; i++)
		if (str_eq(t->env_vars.items[i].key, key))
			return t->env_vars.items[i].value == NULL;
	return false;
}

/* Whether a trigger with the same target has a stored value. */
static bool
is_kept(const struct list *stored, const struct trigger *t, const char *key)
{
	const struct trigger *had = stored->items;
	size_t i;

	for (i = 0; i < stored->n; i++)
		if (str_eq(had[i].branch, t->branch) &&
		    str_eq(had[i].tag, t->tag) &&
		    had[i].pipeline_id == t->pipeline_id &&
		    had[i].environment_id.n == t->environment_id.n &&
		    has_gap(&had[i], key))
			return true;
	return false;
}

/* Leaves out variables without a value, unless one is stored. */
static void
gaps_take(const struct part *p, struct trigger *t, const struct list *stored)
{
	struct arena *a = p->im->a;
	struct map vars = { .n = 0 };
	const struct pair *one;
	size_t i;

	vars.items = arena_alloc(a, t->env_vars.n, sizeof(*vars.items));
	for (i = 0; i < t->env_vars.n; i++) {
		one = &t->env_vars.items[i];
		if (one->value != NULL || is_kept(stored, t, one->key))
			vars.items[vars.n++] = *one;
		else
			part_missing(p->im,
			    arena_printf(a, "%s/envVars/%s", p->at, one->key));
	}
	t->env_vars = vars;
}

static const struct err *
triggers_take(struct import *im, const struct list *stored,
    struct json_text *out)
{
	const struct document_trigger *from = im->doc->triggers.items;
	struct part p = { .im = im };
	struct trigger *to;
	const struct err *e = NULL;
	struct list list;
	struct buf text;
	size_t i;

	list.n = im->doc->triggers.n;
	list.items = to = arena_alloc(im->a, list.n, sizeof(*to));
	for (i = 0; e == NULL && i < list.n; i++) {
		p.at = part_pointer(im, "triggers", i);
		to[i] = from[i].t;
		e = part_targets(&p, from[i].pipeline, from[i].environment,
		    &to[i].pipeline_id, &to[i].environment_id);
		gaps_take(&p, &to[i], stored);
	}
	if (e != NULL)
		return e;
	buf_init(&text, PART_BODY);
	json_write_list(&text, &trigger_shape, &list, 0);
	return part_text(im->a, &text, out);
}

const struct err *
import_project_begin(struct part *p, struct project *old)
{
	struct import *im = p->im;
	struct project first = im->doc->p;
	const struct err *e;

	if ((e = project_queue_up(im->rq->db)) != NULL ||
	    (e = named_find(im->rq->db, NAMED_PROJECT, 0, first.name,
		 &p->id)) != NULL)
		return e;
	im->is_new = p->id == 0;
	if (im->is_new)
		e = part_put(p, "createProject", NULL, &project_shape, &first);
	im->project_id = p->id;
	if (e != NULL || p->id == 0)
		return e;
	e = project_lock(im->rq->db, im->a, p->id, old);
	if (e == NULL && first.project_dir != NULL &&
	    !str_eq(first.project_dir, old->project_dir))
		faults_add(&im->rq->faults, "/document/projectDir",
		    "cannot change; leave it out, or send %s",
		    old->project_dir);
	return e;
}

static void
presets_look(struct import *im, const struct list *presets)
{
	const struct preset *p = presets->items;
	size_t i;

	for (i = 0; im->is_new && i < presets->n; i++)
		if (p[i].secret && p[i].fallback == NULL)
			part_missing(im,
			    arena_printf(im->a, "%s/default",
				part_pointer(im, "envPresets", i)));
}

const struct err *
import_project_put(struct part *p, const struct project *old)
{
	struct import *im = p->im;
	struct project all = im->doc->p;
	struct list triggers, presets;
	const struct err *e;

	if ((e = json_items(im->a, &trigger_shape, old->triggers.s,
		 &triggers)) != NULL ||
	    (e = json_items(im->a, &preset_shape, all.env_presets.s,
		 &presets)) != NULL ||
	    (e = triggers_take(im, &triggers, &all.triggers)) != NULL)
		return e;
	presets_look(im, &presets);
	if (im->rq->faults.n > 0)
		return NULL;
	return part_send(p, "updateProject", &project_shape, &all, p->id);
}
