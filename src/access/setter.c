/* SPDX-License-Identifier: ISC */
#include "access/setter.h"

#include "core/log.h"
#include "core/str.h"
#include "store/gitrepo.h"
#include "store/identity.h"

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
