/* SPDX-License-Identifier: ISC */
/* Repositories are listed by the Git server's API alone. */
#include "api/forge.h"
#include "api/git_read.h"
#include "core/str.h"
#include "store/identity.h"
#include "web/scoreboard.h"

/* A request for the repositories of an account. */
struct listing {
	struct req *rq;
	const char *search;
	struct forge_page *page;
	struct list *out;
};

static const struct err *
repositories_ask(struct forge *forge, struct arena *a,
    const struct access_token *token, void *context)
{
	struct listing *l = context;
	struct identity who = { .forge_id = NULL };
	struct git_repository *to;
	const struct forge_repo *from;
	const struct err *e;
	struct list got;
	size_t i;

	if (token->as == ACCESS_USER &&
	    (e = identity_of(l->rq->db, a, l->rq->who.user_id, &who)) != NULL)
		return e;
	e = forge_repos(forge, a, token->text, who.forge_id, l->search, l->page,
	    &got);
	if (e != NULL && e->code == ERR_NOTFOUND)
		return err_as(e, ERR_UPSTREAM, 404);
	if (e != NULL)
		return e;
	from = got.items;
	to = arena_alloc(a, got.n, sizeof(*to));
	for (i = 0; i < got.n; i++)
		to[i] = (struct git_repository){ .path = from[i].path,
			.repository = forge_repo_address(forge, a, &from[i]),
			.default_branch = from[i].default_branch,
			.url = git_page_only(from[i].url) };
	*l->out = (struct list){ .items = to, .n = got.n };
	return NULL;
}

const struct err *
git_repositories(struct req *rq, const char *search, struct forge_page *page,
    struct list *out)
{
	const struct access *access = rq->access;
	struct listing l = { .rq = rq,
		.search = search,
		.page = page,
		.out = out };
	const struct err *e;
	int64_t until;

	*out = (struct list){ .items = NULL };
	if ((e = git_until(rq, &until)) != NULL)
		return e;
	if (access->forge == NULL &&
	    !str_eq(rq->settings->gitserver.type, "git"))
		return gitserver_missing(rq, "Reading from the Git server", 1);
	if (access->forge == NULL || !forge_has_api(access->forge))
		return err_public(ERR_CONFIG,
		    "The Git server has no API (gitserver.type is git), so its "
		    "repositories cannot be listed.");
	forge_until(access->forge, until);
	e = access_call(access, rq->a, rq->who.user_id, repositories_ask, &l);
	forge_until(access->forge, 0);
	return e != NULL ? git_error(e) : NULL;
}
