/* SPDX-License-Identifier: ISC */
#include "deploy/shared.h"

#include <string.h>

#include "core/str.h"
#include "crypto/public_key.h"
#include "deploy/stored_secrets.h"
#include "json/json.h"
#include "queue/deployment.h"
#include "store/env.h"

#define TEXT_MAX ((size_t)1 << 20)
/* A secret value, encrypted for each project, must fit into a request. */
#define COPIES_MAX ((size_t)2 << 20)

/* The link to the project, if its value was encrypted for this key. */
static const struct variable_link *
link_of(const struct list *links, int64_t project_id, const char *key)
{
	const struct variable_link *one = links->items;
	size_t i;

	for (i = 0; i < links->n; i++)
		if (one[i].project_id == project_id && one[i].secret &&
		    str_eq(one[i].key, key))
			return &one[i];
	return NULL;
}

static void
value_judge(struct deploy *deploy, const struct variable *v)
{
	struct faults *f = deploy->faults;
	const char *fault;

	if (v->key != NULL && (fault = env_name_fault(v->key)) != NULL)
		faults_add(f, "/key", "%s", fault);
	if (faults_has(f, "/value"))
		return;
	if (v->value == NULL && (!v->secret || v->id == 0))
		faults_add(f, "/value",
		    "is required; null is allowed only to keep a stored "
		    "secret");
	else if (v->value != NULL && strlen(v->value) > ENV_VALUE_MAX)
		faults_add(f, "/value", "must have at most 64 KiB");
}

/* Checks what a secret value is stored for. */
static void
copies_judge(struct faults *f, const struct variable *v, size_t projects)
{
	if (!v->secret || v->value == NULL || faults_has(f, "/projects"))
		return;
	if (projects == 0) /* its value would be lost */
		faults_add(f, "/projects",
		    "must name at least one project if a secret value is sent, "
		    "which is encrypted for each project");
	else if (strlen(v->value) > COPIES_MAX / projects)
		faults_add(f, "/projects",
		    "a secret value is encrypted for each project, and all "
		    "copies together must have at most %zu MiB; send fewer "
		    "projects or a shorter value",
		    COPIES_MAX >> 20);
}

/* Checks one of the projects, and locks it. */
static const struct err *
project_judge_link(struct deploy *deploy, const struct variable *v,
    int64_t project_id, const char *at)
{
	const struct variable_link args = { .variable_id = v->id,
		.project_id = project_id,
		.key = v->key };
	const struct err *e;
	bool taken;

	e = deployment_hold_project(deploy->db, deploy->a, project_id);
	if (e != NULL && e->code == ERR_NOTFOUND) {
		faults_add(deploy->faults, at, "unknown project");
		return NULL;
	}
	if (e != NULL || v->key == NULL)
		return e;
	e = variable_link_taken(deploy->db, deploy->a, &args, &taken);
	if (e == NULL && taken)
		faults_conflict(deploy->faults, at,
		    "the project receives another variable with this key; "
		    "remove that one first");
	return e;
}

static bool
is_earlier(const struct variable_ref *refs, size_t i)
{
	size_t k;

	for (k = 0; k < i; k++)
		if (refs[k].project_id == refs[i].project_id)
			return true;
	return false;
}

const struct err *
shared_judge(struct deploy *deploy, const struct variable *v)
{
	struct faults *f = deploy->faults;
	const struct variable_ref *refs;
	const struct err *e;
	struct list list, links;
	bool missing = false;
	size_t i;

	value_judge(deploy, v);
	e = json_items_sent(deploy->a, &variable_ref_shape, v->projects.s,
	    &list);
	if (e == NULL)
		copies_judge(f, v, list.n);
	if (e == NULL)
		e = variable_links_of(deploy->db, deploy->a, v->id, &links);
	refs = list.items;
	for (i = 0; e == NULL && i < list.n; i++) {
		const char *at = fault_index(f, "/projects", i);

		if (refs[i].project_id == 0)
			continue; /* it has a fault already */
		if (is_earlier(refs, i))
			faults_add(f, at, "is in the list already");
		else
			e = project_judge_link(deploy, v, refs[i].project_id,
			    at);
		missing = missing ||
		    link_of(&links, refs[i].project_id, v->key) == NULL;
	}
	if (e == NULL && missing && v->secret && v->value == NULL &&
	    !faults_has(f, "/value"))
		faults_add(f, "/value",
		    "is encrypted for each project and key, so it is required "
		    "to add a project or to change the key");
	return e;
}

/* The object that is stored for one project; text NULL if the variable is not
 * secret. */
static const struct err *
value_seal(struct deploy *deploy, const struct variable *v,
    const struct list *links, int64_t project_id, struct json_text *out)
{
	const struct variable_link *had = link_of(links, project_id, v->key);
	const struct env_var var = { .name = v->key, .value = v->value };
	struct pair pair = { .key = v->key };
	const struct map map = { .items = &pair, .n = 1 };
	const struct err *e;
	struct buf text;

	*out = (struct json_text){ .s = NULL };
	if (!v->secret)
		return NULL;
	if (v->value == NULL && had != NULL) {
		*out = had->sealed;
		return NULL;
	}
	if ((e = stored_secrets_seal(deploy, project_id, &var, &pair.value)) !=
	    NULL)
		return e;
	buf_init(&text, TEXT_MAX);
	json_write_map(&text, &map);
	if ((e = buf_check(&text)) == NULL)
		out->s = arena_strndup(deploy->a, text.data, text.len);
	buf_release(&text);
	return e;
}

static const struct err *
links_save(struct deploy *deploy, const struct variable *v, int64_t id,
    const struct list *links)
{
	struct variable_link one = { .variable_id = id, .key = v->key };
	const struct variable_ref *refs;
	const struct err *e;
	struct list list;
	size_t i;

	if ((e = json_items(deploy->a, &variable_ref_shape, v->projects.s,
		 &list)) != NULL ||
	    (e = variable_unlink(deploy->db, id)) != NULL)
		return e;
	refs = list.items;
	for (i = 0; e == NULL && i < list.n; i++) {
		one.project_id = refs[i].project_id;
		e = value_seal(deploy, v, links, one.project_id, &one.sealed);
		if (e == NULL)
			e = variable_link(deploy->db, &one);
	}
	return e;
}

/* Adds a fault for each project that receives more than a deployment can. */
static const struct err *
room_check(struct deploy *deploy, const struct variable *v, int64_t id)
{
	const struct variable_link *full;
	const struct variable_ref *refs;
	struct list list, overfull;
	const struct err *e;
	size_t i, k;

	if ((e = json_items(deploy->a, &variable_ref_shape, v->projects.s,
		 &list)) != NULL ||
	    (e = variable_overfull(deploy->db, deploy->a, id, ENV_TOTAL_MAX,
		 &overfull)) != NULL)
		return e;
	full = overfull.items;
	refs = list.items;
	for (i = 0; i < overfull.n; i++) {
		for (k = 0; k + 1 < list.n; k++)
			if (refs[k].project_id == full[i].project_id)
				break;
		faults_add(deploy->faults,
		    fault_index(deploy->faults, "/projects", k),
		    "would receive shared variables of more than 512 KiB; "
		    "remove one of them or shorten the value");
	}
	return faults_check(deploy->faults);
}

const struct err *
shared_save(struct deploy *deploy, const struct variable *v, int64_t *id)
{
	struct variable open = *v;
	const struct err *e;
	struct list links;

	*id = v->id;
	if (v->secret)
		open.value = NULL;
	e = variable_links_of(deploy->db, deploy->a, v->id, &links);
	if (e == NULL)
		e = v->id == 0 ? variable_insert(deploy->db, &open, id) :
				 variable_update(deploy->db, &open);
	if (e == NULL)
		e = links_save(deploy, v, *id, &links);
	return e != NULL ? e : room_check(deploy, v, *id);
}

/* Reads the value that was encrypted for the project. */
static const struct err *
sealed_read_link(struct arena *a, const struct variable_link *one,
    struct sealed *out)
{
	const struct err *e;
	struct map map;

	if ((e = json_map(a, one->sealed.s, &map)) != NULL)
		return e;
	if (map.n != 1 || map.items[0].value == NULL)
		return err_new(ERR_INTERNAL,
		    "variable %lld: the value for project %lld is missing",
		    (long long)one->variable_id, (long long)one->project_id);
	out->text = map.items[0].value;
	out->len = public_key_text_length(stored_secrets_purpose(a,
					      one->project_id, one->key),
	    out->text);
	return NULL;
}

const struct err *
shared_variables(struct deploy *deploy, struct arena *a, int64_t project_id,
    struct list *out)
{
	const struct variable_link *from;
	const struct err *e;
	struct env_var *to;
	struct list links;
	size_t i;

	*out = (struct list){ .n = 0 };
	e = variable_links_of_project(deploy->db, a, project_id, &links);
	from = links.items;
	out->items = to = arena_alloc(a, links.n, sizeof(*to));
	for (i = 0; e == NULL && i < links.n; i++) {
		to[i] = (struct env_var){ .name = from[i].key,
			.value = from[i].value,
			.secret = from[i].secret };
		if (from[i].secret)
			e = sealed_read_link(a, &from[i], &to[i].sealed);
	}
	out->n = e == NULL ? links.n : 0;
	return e;
}
