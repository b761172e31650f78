/* SPDX-License-Identifier: ISC */
#include "access/setter.h"

#include <strings.h>

#include "core/log.h"
#include "core/str.h"
#include "store/gitrepo.h"
#include "store/identity.h"
#include "store/submodule.h"

/* A repository, and what the user who set it finds. */
struct setting {
	int64_t project_id;
	const char *repository;
	struct forge_repo repo; /* as stored, else by its path */
	struct forge_repo found;
};

static const struct err *
setting_reject(void)
{
	return err_public(ERR_FORBIDDEN,
	    "The user who set the repository of the project cannot read it at "
	    "the Git server, so it is not read with the access of others. A "
	    "maintainer who can read it there sends the project's repository "
	    "again, with no other member (PUT /api/projects).");
}

static const struct err *
setting_ask(struct forge *forge, struct arena *a,
    const struct access_token *token, void *context)
{
	struct setting *s = context;

	s->found = s->repo;
	return forge_repo_find(forge, a, token->text, &s->found);
}

/* The server denies the request, so that repeating it is useless. */
static bool
is_denied(const struct err *e)
{
	return e->code == ERR_NOTFOUND || e->code == ERR_UNAUTHENTICATED ||
	    (e->code == ERR_UPSTREAM && e->sys >= 400 && e->sys < 500);
}

/* Asks the server as the user. */
static const struct err *
setting_find(const struct access *x, struct arena *a, struct setting *s,
    int64_t user_id)
{
	const struct err *e;
	const char *address;

	e = access_call(x, a, user_id, setting_ask, s);
	if (e != NULL && is_denied(e)) {
		log_info("project %lld: user %lld, who set the repository: %s",
		    (long long)s->project_id, (long long)user_id, err_words(e));
		return setting_reject();
	}
	if (e != NULL)
		return e;
	if (s->repo.id != NULL && !str_eq(s->repo.id, s->found.id))
		return setting_reject();
	return forge_repo_at(x->forge, a, s->repository, s->found.path,
	    &address);
}

/* Whether the user has an account whose rights can be asked. */
static const struct err *
setter_account(const struct access *x, struct arena *a, int64_t user_id,
    bool *out)
{
	struct account who;
	const struct err *e;

	*out = false;
	e = identity_account(x->db, a, user_id, &who);
	if (e != NULL && e->code == ERR_NOTFOUND)
		return NULL;
	if (e == NULL)
		*out = who.forge != NULL;
	return e;
}

const struct err *
setter_may(const struct access *x, struct arena *a, int64_t user_id,
    const char *repository, bool *out)
{
	struct forge_repo repo;

	*out = true;
	if (!access_is_personal(x->forge) ||
	    forge_repo_of(x->forge, a, repository, &repo) != NULL)
		return NULL;
	return setter_account(x, a, user_id, out);
}

const struct err *
setter_may_list(const struct access *x, struct arena *a, int64_t user_id,
    bool *out)
{
	*out = true;
	return access_is_personal(x->forge) ?
	    setter_account(x, a, user_id, out) :
	    NULL;
}

const struct err *
setter_check(const struct access *x, struct arena *a, int64_t project_id,
    const char *repository)
{
	struct setting s = { .project_id = project_id,
		.repository = repository };
	struct git_setter setter;
	const struct err *e;
	bool has_account;

	if (x->forge == NULL || !forge_has_api(x->forge) ||
	    forge_repo_of(x->forge, a, repository, &s.repo) != NULL)
		return NULL;
	e = gitrepo_setter(x->db, a, project_id, forge_server(x->forge),
	    repository, &setter);
	if (e != NULL || !setter.set_by.set ||
	    (setter.confirmed_by.set &&
		setter.confirmed_by.n == setter.set_by.n))
		return e;
	e = setter_account(x, a, setter.set_by.n, &has_account);
	if (e != NULL || !has_account)
		return e;
	if (setter.repo_id != NULL)
		s.repo = (struct forge_repo){ .id = setter.repo_id,
			.path = setter.path };
	if ((e = setting_find(x, a, &s, setter.set_by.n)) != NULL)
		return e;
	return setter_confirm(x, project_id, repository, &s.found,
	    setter.set_by.n);
}

const struct err *
setter_confirm(const struct access *x, int64_t project_id,
    const char *repository, const struct forge_repo *repo, int64_t user_id)
{
	const struct git_repo row = { .project_id = project_id,
		.server = forge_server(x->forge),
		.repository = repository,
		.repo_id = repo->id,
		.path = repo->path };

	return gitrepo_confirm(x->db, &row, user_id);
}

static void
refuse(struct buf *refused, const char *path, const char *why)
{
	buf_printf(refused, "%s%s %s", refused->len > 0 ? "; " : "", path, why);
}

/* Finds the number of a repository in the list: that which is stored, or which
 * the user who set the list finds now.  It stays unknown if that user has no
 * account at the server. */
static const struct err *
listed_find(const struct access *x, struct arena *a,
    const struct setter_list *list, const char *address,
    struct forge_repo *repo)
{
	struct submodule row = { .project_id = list->project_id,
		.server = forge_server(x->forge),
		.path = repo->path },
			 stored;
	struct setting s = { .project_id = list->project_id,
		.repository = address,
		.repo = *repo };
	const struct err *e;
	bool has_account = false;

	e = submodule_find(x->db, a, &row, &stored);
	if (e == NULL)
		repo->id = stored.repo_id;
	if (e == NULL || e->code != ERR_NOTFOUND)
		return e;
	if (list->set_by.set &&
	    (e = setter_account(x, a, list->set_by.n, &has_account)) != NULL)
		return e;
	if (!has_account)
		return NULL;
	if ((e = setting_find(x, a, &s, list->set_by.n)) != NULL)
		return e;
	row.repo_id = repo->id = s.found.id;
	return submodule_confirm(x->db, &row, list->set_by.n);
}

/* Judges one repository of the list; `address` is that at its path. */
static const struct err *
listed_lend(const struct access *x, struct arena *a,
    const struct setter_list *list, const char *address, struct buf *lent,
    struct buf *refused)
{
	struct forge_repo repo;
	const struct err *e;
	const char *path;

	if ((e = forge_repo_of(x->forge, a, address, &repo)) != NULL)
		return e;
	path = repo.path;
	e = listed_find(x, a, list, address, &repo);
	if (e != NULL && e->code == ERR_FORBIDDEN) {
		refuse(refused, path,
		    "cannot be read at the Git server by the user who set the "
		    "list");
		return NULL;
	}
	if (e != NULL)
		return e;
	e = forge_repo_find(x->forge, a, list->token, &repo);
	if (e != NULL && !is_denied(e))
		return e;
	if (e != NULL)
		refuse(refused, path,
		    "is not shown by the Git server to the user with whose "
		    "access the deployment reads");
	else if (strcasecmp(repo.path, path) != 0)
		refuse(refused, path,
		    arena_printf(a, "is %s at the Git server now", repo.path));
	if (e == NULL &&
	    (address = forge_repo_address(x->forge, a, &repo)) != NULL)
		buf_printf(lent, "%s%s", lent->len > 0 ? " " : "", address);
	return NULL;
}

const struct err *
setter_lend(const struct access *x, struct arena *a,
    const struct setter_list *list, struct buf *lent, struct buf *refused)
{
	const struct submodule_path *p = list->paths.items;
	const struct err *e = NULL;
	struct forge_repo repo;
	const char *address;
	size_t i;

	for (i = 0; e == NULL && i < list->paths.n; i++) {
		repo = (struct forge_repo){ .path = p[i].path };
		address = forge_repo_address(x->forge, a, &repo);
		if (address != NULL)
			e = listed_lend(x, a, list, address, lent, refused);
		else
			refuse(refused, p[i].path,
			    "is no repository of the Git server");
	}
	return e;
}
