/* SPDX-License-Identifier: ISC */
/*
 * slipway-admin gitserver move: the Git server has a new URL. Accounts are
 * identified by the server's URL and their id there, so after any change of the
 * URL no user can sign in until the stored data is moved as well.
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "cli/admin.h"
#include "core/str.h"
#include "forge/forge.h"
#include "store/gitserver.h"

struct rename {
	struct admin *admin;
	struct forge *forge; /* at its new URL */
	struct forge *was;   /* the same at its old URL, never called */
	struct settings_gitserver old;
	bool dry;
	struct list projects; /* struct gitserver_project */
	const char **address; /* of each; NULL = unchanged */
	struct gitserver_moved moved;
	size_t nprojects;
};

static const struct err *
servers_open(struct rename *m, const char *old)
{
	const struct settings_gitserver *s = &m->admin->set.gitserver;
	const struct err *e;

	if ((e = forge_open(s, &m->forge)) != NULL)
		return e;
	m->old = *s;
	m->old.url = old;
	m->old.api_url = NULL;
	m->old.allow_http = true;
	if (forge_open(&m->old, &m->was) != NULL)
		return err_public(ERR_METHOD,
		    "move: the old URL must have the form "
		    "https://git.example.org");
	if (str_eq(forge_server(m->was), forge_server(m->forge)))
		return err_public(ERR_METHOD,
		    "move: %s is the configured URL; name the old one",
		    forge_server(m->was));
	return NULL;
}

/* Two users of one account cannot be merged. */
static const struct err *
twins_check(const struct rename *m)
{
	const struct gitserver_twins *t;
	const struct err *e;
	struct list list;
	size_t i;

	e = gitserver_twins_find(m->admin->db, m->admin->a,
	    forge_server(m->was), forge_server(m->forge), &list);
	if (e != NULL || list.n == 0)
		return e;
	t = list.items;
	for (i = 0; i < list.n; i++)
		(void)
		    printf("account %s: %s at the old URL, %s at the new one\n",
			t[i].forge_id, str_visible(m->admin->a, t[i].before),
			str_visible(m->admin->a, t[i].after));
	return err_public(ERR_CONFLICT,
	    "%zu accounts have two users, because they have signed in at the "
	    "new URL already: delete one user of each (slipway-admin user "
	    "delete)",
	    list.n);
}

/* Compares a stored repository with the server's: 1 = the same, -1 = another, 0
 * = unknown. */
static int
repo_compare(const struct rename *m, const struct gitserver_repo *r)
{
	const char *token = m->admin->set.gitserver.token;
	struct forge_repo by_id = { .id = r->repo_id, .path = r->path };
	struct forge_repo by_path = { .path = r->path };

	if (token != NULL && token[0] == '\0')
		token = NULL;
	if (token != NULL &&
	    forge_repo_find(m->forge, m->admin->a, token, &by_id) == NULL &&
	    strcasecmp(by_id.path, r->path) == 0)
		return 1;
	if (forge_repo_find(m->forge, m->admin->a, token, &by_path) != NULL)
		return 0;
	return str_eq(by_path.id, r->repo_id) ? 1 : -1;
}

/* On another server the same ids belong to other people. */
static const struct err *
same_check(const struct rename *m)
{
	const struct gitserver_repo *r;
	size_t i, same = 0, other = 0;
	const struct err *e;
	struct list list;
	int found;

	if (!forge_has_api(m->forge))
		return NULL;
	e = gitserver_repos(m->admin->db, m->admin->a, forge_server(m->was),
	    &list);
	if (e != NULL)
		return e;
	r = list.items;
	for (i = 0; i < list.n; i++) {
		found = repo_compare(m, &r[i]);
		same += found > 0;
		other += found < 0;
	}
	if (other > 0 && same == 0)
		return err_public(ERR_CONFLICT,
		    "%s is a different server: %zu of the known repositories "
		    "have other ids there, so the ids of accounts belong to "
		    "other people, too; nothing was moved",
		    forge_server(m->forge), other);
	if (same > 0)
		(void)printf(
		    "same server: %zu of %zu repositories have the same ids "
		    "there\n",
		    same, list.n);
	else
		(void)printf(
		    "same server: not confirmed, because no known repository "
		    "is readable there; make sure that it is, because accounts "
		    "are moved by their ids\n");
	return NULL;
}

static const struct err *
projects_map(struct rename *m)
{
	const struct gitserver_project *p;
	const struct err *e;
	size_t i;

	m->nprojects = 0;
	e = gitserver_projects(m->admin->db, m->admin->a, &m->projects);
	if (e != NULL)
		return e;
	p = m->projects.items;
	m->address = arena_alloc(m->admin->a, m->projects.n + 1,
	    sizeof(*m->address));
	for (i = 0; i < m->projects.n; i++) {
		e = forge_repo_moved(m->was, m->admin->a, p[i].repository,
		    forge_server(m->forge), &m->address[i]);
		if (e != NULL && e->code != ERR_NOTFOUND)
			return e;
		m->nprojects += m->address[i] != NULL && p[i].valid;
	}
	return NULL;
}

static const struct err *
dry_end(void)
{
	return err_new(ERR_PRECONDITION, "dry run");
}

static const struct err *
move_body(struct db *db, void *context)
{
	struct rename *m = context;
	const struct gitserver_project *p;
	const struct err *e;
	size_t i;

	if ((e = projects_map(m)) != NULL ||
	    (e = gitserver_move(db, forge_server(m->was),
		 forge_server(m->forge), &m->moved)) != NULL)
		return e;
	p = m->projects.items;
	for (i = 0; i < m->projects.n; i++)
		if (m->address[i] != NULL &&
		    (e = gitserver_project_move(db, &p[i], m->address[i])) !=
			NULL)
			return e;
	m->admin->audit.object.type = AUDIT_OF_SERVICE;
	return m->dry ? dry_end() : NULL;
}

static void
report(const struct rename *m)
{
	const struct gitserver_project *p = m->projects.items;
	const char *how = m->dry ? "to move" : "moved";
	size_t i;

	for (i = 0; i < m->projects.n; i++)
		if (m->address[i] != NULL && p[i].valid)
			(void)printf("project %s: %s\n",
			    str_visible(m->admin->a, p[i].name),
			    str_visible(m->admin->a, m->address[i]));
	(void)printf("users: %lld %s\ntokens: %lld %s\n"
		     "repositories: %lld %s\n"
		     "logins of administrators: %lld %s\nprojects: %zu %s\n",
	    (long long)m->moved.users, how, (long long)m->moved.tokens, how,
	    (long long)m->moved.repositories, how, (long long)m->moved.claims,
	    how, m->nprojects, how);
}

static const struct err *
rename_run(struct rename *m, const char *old)
{
	const struct err *e;

	if ((e = servers_open(m, old)) != NULL ||
	    (e = twins_check(m)) != NULL || (e = same_check(m)) != NULL)
		return e;
	e = admin_transaction(m->admin, move_body, m);
	if (e != NULL && (!m->dry || e->code != ERR_PRECONDITION))
		return e;
	report(m);
	return NULL;
}

const struct err *
admin_gitserver_move(void *context, struct command_call *call)
{
	const struct admin_move *options = call->options;
	struct rename m = { .admin = context, .dry = options->dry_run };
	const struct err *e;

	e = rename_run(&m, call->word[0]);
	forge_close(m.was);
	forge_close(m.forge);
	return e;
}
