/* SPDX-License-Identifier: ISC */
/* Repositories that were renamed or transferred: projects follow them, and are
 * found by their present addresses. */
#include "access/moved.h"
#include "api/git_read.h"
#include "web/audited.h"
#include "web/scope.h"
#include "web/scoreboard.h"

const struct err *
git_follow(struct req *rq, enum role role, const struct git_repo *repo)
{
	const struct principal *who = &rq->who;
	const struct git_follower by = {
		.user_id = { who->user_id, who->user_id != 0 },
		.username = who->username,
		.via = audited_via(rq),
		.token_id = { who->token_id, who->token_id != 0 },
		.address = rq->in[IN_REMOTE_ADDR],
	};
	const struct err *e;

	e = gitrepo_put(rq->db, repo);
	if (e != NULL || role < ROLE_MAINTAINER)
		return e;
	return moved_follow(rq->access, rq->a, repo, &by);
}

/* What the Git server has at the address of a remote. */
struct lookup {
	struct forge_repo repo;
	bool is_trusted;
};

static const struct err *
lookup_ask(struct forge *forge, struct arena *a,
    const struct access_token *token, void *context)
{
	struct lookup *l = context;

	l->is_trusted = token->trusted;
	return forge_repo_find(forge, a, token->text, &l->repo);
}

static const struct err *
lookup_call(struct req *rq, struct lookup *l)
{
	const struct access *access = rq->access;
	const struct err *e;
	int64_t until;

	if ((e = git_until(rq, &until)) != NULL)
		return e;
	if (scoreboard_long_begin(rq->scoreboard, rq->place, SCOREBOARD_GIT,
		rq->who.user_id) != SCOREBOARD_LONG_YES)
		return err_public(ERR_RATE,
		    "Too many requests are waiting. Try again in a moment.");
	forge_until(access->forge, until);
	e = access_call(access, rq->a, rq->who.user_id, lookup_ask, l);
	forge_until(access->forge, 0);
	scoreboard_long_end(rq->place);
	return e;
}

/* Projects that have an older address get the present one, if the caller may
 * change them. */
static const struct err *
projects_follow(struct req *rq, const struct lookup *l,
    const struct list *found)
{
	struct project *p = found->items;
	const struct err *e = NULL;
	struct git_repo row;
	enum role role;
	size_t i;

	for (i = 0; e == NULL && l->is_trusted && i < found->n; i++) {
		role = role_of(scope_role(rq, p[i].role));
		if (role < ROLE_MAINTAINER)
			continue;
		row = (struct git_repo){ .project_id = p[i].id,
			.server = forge_server(rq->access->forge),
			.repository = p[i].repository,
			.repo_id = l->repo.id,
			.path = l->repo.path };
		e = git_follow(rq, role, &row);
		p[i].repository = moved_address(rq->access->forge, rq->a,
		    p[i].repository, l->repo.path);
	}
	return e;
}

const struct err *
git_projects(struct req *rq, const char *address, struct list *out)
{
	struct forge *forge = rq->access->forge;
	struct lookup l = { .is_trusted = false };
	const struct err *e;

	*out = (struct list){ .items = NULL };
	if (forge == NULL || !forge_has_api(forge) ||
	    forge_repo_of(forge, rq->a, address, &l.repo) != NULL)
		return NULL;
	e = lookup_call(rq, &l);
	if (e != NULL && e->code == ERR_NOTFOUND)
		return NULL;
	if (e != NULL)
		return git_error(e);
	e = project_of_repo(rq->db, rq->a,
	    &(struct project_of_repo){ .server = forge_server(forge),
		.repo_id = l.repo.id,
		.reader = rq->who.user_id,
		.member = rq->member },
	    out);
	return e != NULL ? e : projects_follow(rq, &l, out);
}
