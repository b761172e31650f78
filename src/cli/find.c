/* SPDX-License-Identifier: ISC */
#include "cli/find.h"

#include <strings.h>

#include "core/address.h"
#include "core/num.h"
#include "core/str.h"

#define NAMES_MAX ((size_t)1 << 20)

static const struct json_path named_paths[] = {
	JSON_PATH(struct named, id, "id", .must = true),
	JSON_PATH(struct named, project_id, "projectId"),
	JSON_PATH(struct named, name, "name", .must = true),
	JSON_PATH(struct named, repository, "repository"),
	JSON_PATH_END,
};

const struct err *
find_projects(struct client *c, struct list *out)
{
	return client_all(c, "/api/projects?", named_paths,
	    sizeof(struct named), out);
}

static const struct err *
of_project(struct client *c, const char *kind, int64_t project,
    struct list *out)
{
	return client_all(c,
	    project == 0 ? arena_printf(c->a, "/api/%s?", kind) :
			   arena_printf(c->a, "/api/%s?projectId=%lld", kind,
			       (long long)project),
	    named_paths, sizeof(struct named), out);
}

const struct err *
find_pipelines(struct client *c, int64_t project, struct list *out)
{
	return of_project(c, "pipelines", project, out);
}

const struct err *
find_environments(struct client *c, int64_t project, struct list *out)
{
	return of_project(c, "environments", project, out);
}

const char *
find_name(const struct list *list, int64_t id)
{
	const struct named *n = list->items;
	size_t i;

	for (i = 0; i < list->n; i++)
		if (n[i].id == id)
			return n[i].name;
	return NULL;
}

static void
add_names(const struct list *list, struct buf *out)
{
	const struct named *n = list->items;
	size_t i;

	for (i = 0; i < list->n; i++)
		if (!str_has_control(n[i].name))
			buf_printf(out, "%s\n", n[i].name);
}

static const struct err *
unknown(struct client *c, const char *what, const struct list *list,
    const char *name)
{
	struct buf names;
	const char *meant;

	buf_init(&names, NAMES_MAX);
	add_names(list, &names);
	meant = command_suggest(c->a, name, &names);
	buf_release(&names);
	if (meant != NULL)
		return err_public(ERR_NOTFOUND,
		    "unknown %s \"%s\"; did you mean \"%s\"?", what, name,
		    meant);
	return err_public(ERR_NOTFOUND,
	    "unknown %s \"%s\": \"slipway %ss\" lists the %ss", what, name,
	    what, what);
}

const struct err *
find_in(struct client *c, const char *what, const struct list *list,
    const char *name, struct named *out)
{
	const struct named *n = list->items, *by_id = NULL;
	size_t i;
	int64_t id;

	if (!num_parse(name, 1, NUM_SAFE, &id))
		id = 0;
	for (i = 0; i < list->n; i++) {
		if (strcasecmp(n[i].name, name) == 0) {
			*out = n[i];
			return NULL;
		}
		if (id != 0 && n[i].id == id)
			by_id = &n[i];
	}
	if (by_id == NULL)
		return unknown(c, what, list, name);
	*out = *by_id;
	return NULL;
}

/* Asks the service for the projects of a remote that no project names: the
 * repository may have been renamed since. A service that cannot find out knows
 * none. */
static void
ask_projects(struct client *c, const char *address, struct list *out)
{
	const char *plain = checkout_plain(c->a, address);

	*out = (struct list){ .items = NULL };
	if (plain == NULL ||
	    client_all(c,
		arena_printf(c->a, "/api/projects?remote=%s&",
		    http_escape(c->a, plain)),
		named_paths, sizeof(struct named), out) != NULL)
		out->n = 0;
}

/* Finds the project whose repository the checkout has as a remote. */
static const struct err *
project_here(struct client *c, const struct list *list, struct named *out)
{
	const struct named *n = list->items;
	enum checkout_same same;
	struct checkout here;
	const struct err *e;
	size_t i, found = 0;
	struct list asked;

	if ((e = checkout_read(c->a, &here)) != NULL)
		return err_public(ERR_NOTFOUND,
		    "%s: name the project with --project", err_words(e));
	/* on servers that tell cases apart, there may be both */
	for (same = CHECKOUT_SAME; found == 0 && same > CHECKOUT_OTHER; same--)
		for (i = 0; i < list->n; i++)
			if (checkout_same_repository(n[i].repository,
				here.address) == same &&
			    found++ == 0)
				*out = n[i];
	if (found == 0 && here.address != NULL) {
		ask_projects(c, here.address, &asked);
		if ((found = asked.n) > 0)
			*out = *(const struct named *)asked.items;
	}
	if (found == 1)
		return NULL;
	if (found > 1)
		return err_public(ERR_CONFLICT,
		    "%zu projects have the repository %s: name one with "
		    "--project",
		    found, address_public(c->a, here.address));
	if (here.address == NULL)
		return err_public(ERR_NOTFOUND,
		    "this checkout has no remote repository: name the project "
		    "with --project");
	return err_public(ERR_NOTFOUND,
	    "no project has the repository %s: name the project with "
	    "--project",
	    address_public(c->a, here.address));
}

const struct err *
find_project(struct client *c, const char *name, struct named *out)
{
	const struct err *e;
	struct list list;

	if ((e = find_projects(c, &list)) != NULL)
		return e;
	return name == NULL ? project_here(c, &list, out) :
			      find_in(c, "project", &list, name, out);
}

struct latest {
	int64_t id;
};
static const struct json_path latest_paths[] = {
	JSON_PATH(struct latest, id, "data.*.id"),
	JSON_PATH_END,
};

const struct err *
find_deployment(struct client *c, const char *text, int64_t *out)
{
	struct latest latest = { 0 };
	struct http_response r;
	struct named project;
	const struct err *e;

	*out = 0;
	if (text != NULL) {
		if (num_parse(text, 1, NUM_SAFE, out))
			return NULL;
		return err_public(ERR_METHOD,
		    "\"%s\" is not the number of a deployment: \"slipway "
		    "list\" prints them",
		    text);
	}
	if ((e = find_project(c, NULL, &project)) != NULL ||
	    (e = client_object(c,
		 arena_printf(c->a, "/api/deployments?limit=1&projectId=%lld",
		     (long long)project.id),
		 latest_paths, &latest, &r)) != NULL)
		return e;
	if (latest.id == 0)
		return err_public(ERR_NOTFOUND,
		    "the project \"%s\" has no deployment yet", project.name);
	*out = latest.id;
	return NULL;
}

/* --- completion */

typedef const struct err *find_list(struct client *, int64_t project,
    struct list *);

static const struct err *
projects_of(struct client *c, int64_t project, struct list *out)
{
	(void)project;
	return find_projects(c, out);
}

/* Offers the names of a kind, of the project that --project names so far. */
static void
offer(struct command_call *call, find_list *all, const char *project,
    struct buf *out)
{
	struct client c;
	struct named named = { .id = 0 };
	struct list list;

	client_init(&c, call);
	c.progress = false;
	if ((all == projects_of || find_project(&c, project, &named) == NULL) &&
	    all(&c, named.id, &list) == NULL)
		add_names(&list, out);
	client_release(&c);
}

/* The value of --project, which is the first option of commands that have it
 * together with such names. */
static const char *
project_given(struct command_call *call)
{
	const struct option_row *o;
	void *fills;

	o = command_option(call, "project", sizeof("project") - 1, '\0',
	    &fills);
	return o == NULL ? NULL :
			   *(const char **)(void *)((char *)fills + o->offset);
}

void
known_projects(struct command_call *call, struct buf *out)
{
	offer(call, projects_of, NULL, out);
}

void
known_pipelines(struct command_call *call, struct buf *out)
{
	offer(call, find_pipelines, project_given(call), out);
}

void
known_environments(struct command_call *call, struct buf *out)
{
	offer(call, find_environments, project_given(call), out);
}

struct recent {
	int64_t id;
	const char *status;
	const char *branch;
};
static const struct json_path recent_paths[] = {
	JSON_PATH(struct recent, id, "id", .must = true),
	JSON_PATH(struct recent, status, "status"),
	JSON_PATH(struct recent, branch, "branch"),
	JSON_PATH_END,
};

void
known_deployments(struct command_call *call, struct buf *out)
{
	struct http_response r;
	struct client c;
	struct list list;
	const struct recent *d;
	size_t i;

	client_init(&c, call);
	c.progress = false;
	if (client_get(&c, "/api/deployments?limit=20", &r) == NULL &&
	    json_pick_member(c.a, "data", recent_paths, sizeof(*d), r.body,
		r.len, &list) == NULL) {
		d = list.items;
		for (i = 0; i < list.n; i++)
			buf_printf(out, "%lld\t%s %s\n", (long long)d[i].id,
			    d[i].status == NULL ? "" : d[i].status,
			    d[i].branch == NULL ?
				"" :
				str_visible(c.a, d[i].branch));
	}
	client_release(&c);
}
