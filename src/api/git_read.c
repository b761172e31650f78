/* SPDX-License-Identifier: ISC */
/* Branches, tags and commits come from the Git server's API, or, if there is none
 * or the repository is elsewhere, from the Git protocol and the runner's clone. */
#include "api/git_read.h"

#include "access/setter.h"
#include "api/forge.h"
#include "core/address.h"
#include "core/str.h"
#include "deploy/repository.h"
#include "store/deploy_key.h"
#include "store/gitrepo.h"
#include "web/scoreboard.h"

/* Minimum time in ms that must be left for the Git server. The limit covers the
 * whole request, including its wait for a worker, because the client must get a
 * response within ten seconds. */
#define LEFT_MIN 200
/* Limits on what git reports about a repository. */
#define REMOTE_MAX ((size_t)12 << 20)
#define REMOTE_BRANCHES 1000000

/* --- the Git server's API */

/* When a repository is renamed or removed, another user can take its name, and
 * the caller may not have access to the renamed one. So a stored repository id
 * is never replaced by that of another repository at the same path; only a
 * change of the project replaces it. Gitea serves requests by id only with a
 * token. */
static const struct err *
repo_find(struct reading *r, struct forge *forge, const char *token)
{
	const struct err *e;

	r->repo = r->known;
	if (token == NULL)
		r->repo.id = NULL;
	e = forge_repo_find(forge, r->rq->a, token, &r->repo);
	if (r->known.id == NULL)
		return e;
	if (e != NULL && e->code == ERR_NOTFOUND)
		return err_public(ERR_NOTFOUND,
		    "The repository was renamed or removed at the Git server, "
		    "or you have no access to it (404). To use another "
		    "repository in its place, a maintainer must send the "
		    "project's repository again, with no other member (PUT "
		    "/api/projects).");
	if (e == NULL && !str_eq(r->repo.id, r->known.id))
		return err_public(ERR_NOTFOUND,
		    "Another repository at the Git server has taken the name "
		    "of the project's repository (404). If it is the right "
		    "one, a maintainer must send the project's repository "
		    "again, with no other member (PUT /api/projects).");
	return e;
}

const char *
git_page_only(const char *url)
{
	const bool is_page = url != NULL &&
	    (str_starts(url, "https://") || str_starts(url, "http://"));

	return is_page ? url : NULL;
}

static struct git_commit
commit_of(const struct forge_commit *from)
{
	return (struct git_commit){ .hash = from->hash,
		.message = from->message,
		.author_name = from->author_name,
		.author_email = from->author_email,
		.committed_at = from->committed_at,
		.url = git_page_only(from->url) };
}

static const struct err *
commit_read(struct reading *r, struct forge *forge, const char *token)
{
	struct arena *a = r->rq->a;
	struct forge_commit got;
	struct git_commit *to;
	const struct err *e;

	e = forge_commit_find(forge, a, token, &r->repo, r->hash, &got);
	if (e != NULL)
		return e;
	to = arena_alloc(a, 1, sizeof(*to));
	*to = commit_of(&got);
	r->list = (struct list){ .items = to, .n = 1 };
	return NULL;
}

static const struct err *
commits_read(struct reading *r, struct forge *forge, const char *token)
{
	const struct forge_commit *from;
	struct arena *a = r->rq->a;
	struct git_commit *to;
	const struct err *e;
	struct list got;
	size_t i;

	e = r->tip != NULL ?
	    forge_history(forge, a, token, &r->repo, r->tip, &r->page, &got) :
	    forge_commits(forge, a, token, &r->repo,
		r->branch != NULL ? r->branch : r->repo.default_branch,
		&r->page, &got);
	if (e != NULL)
		return e;
	from = got.items;
	to = arena_alloc(a, got.n, sizeof(*to));
	for (i = 0; i < got.n; i++)
		to[i] = commit_of(&from[i]);
	r->list = (struct list){ .items = to, .n = got.n };
	return NULL;
}

/* Copies branches or tags to the request's arena. */
static void
refs_keep(struct reading *r, const struct list *got)
{
	const struct forge_branch *from = got->items;
	struct forge_branch *to = arena_alloc(r->rq->a, got->n, sizeof(*to));
	size_t i;

	for (i = 0; i < got->n; i++) {
		to[i] = from[i];
		to[i].name = arena_strdup(r->rq->a, from[i].name);
		to[i].commit_hash = arena_strdup(r->rq->a, from[i].commit_hash);
	}
	r->list = (struct list){ .items = to, .n = got->n };
}

/* Reduces the list to one tag. */
static void
tag_choose(struct list *tags, const char *name)
{
	struct forge_branch *items = tags->items;
	size_t i = 0;

	while (i < tags->n && !str_eq(items[i].name, name))
		i++;
	*tags = (struct list){ .items = items + i, .n = i < tags->n ? 1 : 0 };
}

static const struct err *
tags_read(struct reading *r, const char *token, const char *address)
{
	struct settings_gitserver s = r->rq->settings->gitserver;
	struct forge_page all = { .page = 1, .limit = REMOTE_BRANCHES };
	struct arena *own = arena_open(REMOTE_MAX);
	const struct err *e;
	struct list got;

	s.token = token;
	e = forge_ls_tags(&s, own, address, r->until,
	    r->tag != NULL ? &all : &r->page, &got);
	if (e == NULL && r->tag != NULL)
		tag_choose(&got, r->tag);
	if (e == NULL)
		refs_keep(r, &got);
	arena_close(own);
	return e;
}

/* By the Git protocol, as the server's API does not list the commits of annotated
 * tags everywhere. */
static const struct err *
tags_at(struct reading *r, struct forge *forge, const char *token)
{
	const struct err *e;
	const char *address;

	e = forge_repo_at(forge, r->rq->a, r->project.repository, r->repo.path,
	    &address);
	return e != NULL ? e : tags_read(r, token, address);
}

/* What the service's credentials read must be open to the user who set the
 * repository. 403 would mean that the role of the caller is missing. */
static const struct err *
service_check(const struct reading *r, enum access_as as)
{
	const struct err *e;
	struct address ad;

	if (as == ACCESS_USER ||
	    (as == ACCESS_ANYBODY &&
		(!address_read(r->project.repository, &ad) ||
		    !address_is_ssh(&ad))))
		return NULL;
	e = setter_check(r->rq->access, r->rq->a, r->project.id,
	    r->project.repository);
	return e != NULL && e->code == ERR_FORBIDDEN ?
	    err_as(e, ERR_NOTFOUND, 0) :
	    e;
}

static const struct err *
ask(struct forge *forge, struct arena *a, const struct access_token *token,
    void *context)
{
	struct reading *r = context;
	const struct err *e;

	/* a token may have fewer rights than its user */
	r->trusted = token->as == ACCESS_SERVICE ||
	    (token->trusted && r->rq->role >= ROLE_MAINTAINER);
	if ((e = service_check(r, token->as)) != NULL ||
	    (e = repo_find(r, forge, token->text)) != NULL)
		return e;
	r->is_found = r->is_live = true;
	if (r->what == READ_COMMITS)
		return commits_read(r, forge, token->text);
	if (r->what == READ_COMMIT)
		return commit_read(r, forge, token->text);
	if (r->what == READ_TAGS)
		return tags_at(r, forge, token->text);
	if (r->what == READ_CONTAINED)
		return forge_contains(forge, a, token->text, &r->repo, r->tip,
		    r->hash, &r->contained);
	return forge_branches(forge, a, token->text, &r->repo, &r->page,
	    &r->list);
}

static const struct err *
from_server(struct reading *r)
{
	const struct access *access = r->rq->access;
	const char *server = forge_server(access->forge);
	struct git_repo known;
	const struct err *e;
	const char *address;

	e = gitrepo_find(r->rq->db, r->rq->a, r->project.id, server,
	    r->project.repository, &known);
	r->known = r->repo;
	if (e == NULL)
		r->known = (struct forge_repo){ .id = known.repo_id,
			.path = known.path };
	else if (e->code != ERR_NOTFOUND)
		return e;
	forge_until(access->forge, r->until);
	e = access_call(access, r->rq->a, r->rq->who.user_id, ask, r);
	forge_until(access->forge, 0);
	if (e != NULL || !r->trusted ||
	    forge_repo_at(access->forge, r->rq->a, r->project.repository,
		r->repo.path, &address) != NULL)
		return e;
	known = (struct git_repo){ .project_id = r->project.id,
		.server = server,
		.repository = r->project.repository,
		.repo_id = r->repo.id,
		.path = r->repo.path };
	return git_follow(r->rq, r->rq->role, &known);
}

/* --- the Git protocol and the runner's clone */

/* Whether the rights of the caller at the Git server decide, also for an
 * address there that is not one of its repositories. */
static bool
is_on_server(const struct reading *r)
{
	struct forge_credential with;

	return r->rq->access->forge != NULL &&
	    forge_clone_with(r->rq->access->forge, r->rq->a,
		r->project.repository, "", &with) == NULL;
}

static const struct err *
remote_token(const struct reading *r, struct settings_gitserver *s)
{
	const struct access *access = r->rq->access;
	struct access_token token;
	const struct err *e;

	s->token = NULL;
	if (!is_on_server(r))
		return NULL;
	forge_until(access->forge, r->until);
	e = access_for(access, r->rq->a, r->rq->who.user_id, &token);
	forge_until(access->forge, 0);
	s->token = token.text;
	return e;
}

static const struct err *
remote_read(const struct reading *r, struct arena *a, struct forge_page *page,
    struct list *out)
{
	struct settings_gitserver s = r->rq->settings->gitserver;
	const struct err *e;

	if ((e = remote_token(r, &s)) != NULL)
		return e;
	return forge_ls_remote(&s, a, r->project.repository, r->until, page,
	    out);
}

static const struct err *
remote_branches(struct reading *r, struct arena *own)
{
	const struct err *e;
	struct list got;

	if ((e = remote_read(r, own, &r->page, &got)) == NULL)
		refs_keep(r, &got);
	return e;
}

static const struct err *
remote_tags(struct reading *r)
{
	struct settings_gitserver s = { .token = NULL };
	const struct err *e;

	if ((e = remote_token(r, &s)) != NULL)
		return e;
	e = tags_read(r, s.token, r->project.repository);
	r->is_found = e == NULL;
	return e;
}

/* The tip of the requested branch or of the default branch; NULL if the
 * repository has no branches. */
static const struct err *
remote_tip(struct reading *r, struct arena *own,
    const struct forge_branch **out)
{
	struct forge_page all = { .page = 1, .limit = REMOTE_BRANCHES };
	const struct forge_branch *items;
	const struct err *e;
	struct list got;
	size_t i;

	*out = NULL;
	if ((e = remote_read(r, own, &all, &got)) != NULL)
		return e;
	items = got.items;
	for (i = 0; *out == NULL && i < got.n; i++)
		if (r->branch == NULL ? items[i].is_default :
					str_eq(items[i].name, r->branch))
			*out = &items[i];
	r->is_found = true;
	if (*out != NULL || (r->branch == NULL && got.n == 0))
		return NULL;
	return err_public(ERR_NOTFOUND,
	    r->branch == NULL ?
		"The repository has no default branch. Name a branch." :
		"The repository has no branch with that name.");
}

/* A list of the commit at the tip alone; empty if there is none. */
static struct list
tip_list(const struct reading *r, const struct forge_branch *tip)
{
	struct git_commit *alone;

	if (tip == NULL)
		return (struct list){ .items = NULL };
	alone = arena_alloc(r->rq->a, 1, sizeof(*alone));
	alone->hash = arena_strdup(r->rq->a, tip->commit_hash);
	return (struct list){ .items = alone, .n = 1 };
}

/* Reduces the list to the requested page. */
static void
page_cut(struct reading *r, const struct list *all)
{
	size_t limit = (size_t)r->page.limit;
	size_t first = (size_t)(r->page.page - 1) * limit;

	r->page.has_more = false;
	r->list = (struct list){ .items = NULL };
	if (first >= all->n)
		return;
	r->page.has_more = all->n - first > limit;
	r->list.n = r->page.has_more ? limit : all->n - first;
	r->list.items = (struct git_commit *)all->items + first;
}

static const struct err *
clone_commits(struct reading *r, const char *branch, struct list *out)
{
	struct branch_commits stored;
	const struct err *e;

	*out = (struct list){ .items = NULL };
	e = commits_find(r->rq->db, r->rq->a, r->project.id, branch, &stored);
	if (e != NULL)
		return e->code == ERR_NOTFOUND ? NULL : e;
	return json_items(r->rq->a, &git_commit_shape, stored.commits.s, out);
}

static const struct err *
remote_commits(struct reading *r, struct arena *own)
{
	const struct forge_branch *tip = NULL;
	const struct err *e;
	struct list all = { .items = NULL };

	if (r->branch != NULL && !r->is_tip && !is_on_server(r) &&
	    (e = clone_commits(r, r->branch, &all)) != NULL)
		return e;
	if (all.n == 0) {
		if ((e = remote_tip(r, own, &tip)) != NULL)
			return e;
		if (tip != NULL && !r->is_tip &&
		    (e = clone_commits(r, tip->name, &all)) != NULL)
			return e;
	}
	if (all.n == 0)
		all = tip_list(r, tip);
	page_cut(r, &all);
	return NULL;
}

/* The API cannot decrypt deploy keys, so it cannot read repositories that
 * require one. */
static const struct err *
key_explain(const struct reading *r, const struct err *e)
{
	struct deploy_key key;
	struct address ad;

	if (e == NULL || e->code != ERR_UPSTREAM ||
	    !address_read(r->project.repository, &ad) || !address_is_ssh(&ad) ||
	    deploy_key_find(r->rq->db, r->rq->a, r->project.id, &key) != NULL)
		return e;
	return err_public(ERR_UPSTREAM,
	    "git cannot read the repository. The project's deploy key, which "
	    "only runners can use, may open it: deploy a branch, tag or commit "
	    "by its name.");
}

static const struct err *
from_git(struct reading *r)
{
	struct arena *own;
	const struct err *e;

	if (r->what == READ_TAGS)
		return key_explain(r, remote_tags(r));
	own = arena_open(REMOTE_MAX);
	e = r->what == READ_COMMITS ? remote_commits(r, own) :
				      remote_branches(r, own);
	arena_close(own);
	return key_explain(r, e);
}

/* --- choice of the source, and the response */

const struct err *
git_until(const struct req *rq, int64_t *until)
{
	*until = time_mono_ms() + rq->settings->gitserver.timeout * 1000 -
	    req_waited(rq);
	if (*until >= time_mono_ms() + LEFT_MIN)
		return NULL;
	return err_public(ERR_UPSTREAM_TIMEOUT,
	    "The Git server did not respond in time to earlier requests. Try "
	    "again later.");
}

static const struct err *
source_read(struct reading *r)
{
	const struct req *rq = r->rq;
	struct forge *forge = rq->access->forge;
	const struct err *e;

	if ((e = git_until(rq, &r->until)) != NULL)
		return e;
	if (r->within != 0 && r->until > time_mono_ms() + r->within)
		r->until = time_mono_ms() + r->within;
	if (forge == NULL && !str_eq(rq->settings->gitserver.type, "git"))
		return gitserver_missing(rq, "Reading from the Git server", 1);
	if (forge == NULL || !forge_has_api(forge))
		return from_git(r);
	e = forge_repo_of(forge, rq->a, r->project.repository, &r->repo);
	if (e == NULL)
		return from_server(r);
	return e->code == ERR_NOTFOUND ? from_git(r) : e;
}

const struct err *
git_error(const struct err *e)
{
	return e->code == ERR_UNAUTHENTICATED ?
	    err_as(e, ERR_UPSTREAM, e->sys) :
	    e;
}

const struct err *
git_read(struct reading *r)
{
	const struct err *e = source_read(r);

	return e != NULL ? git_error(e) : NULL;
}

/* A Git server can take long, so this counts as waiting: some workers stay free
 * for other requests. */
static const struct err *
read_waiting(struct reading *r)
{
	struct req *rq = r->rq;
	const struct err *e;

	if (scoreboard_long_begin(rq->scoreboard, rq->place, SCOREBOARD_GIT,
		rq->who.user_id) != SCOREBOARD_LONG_YES)
		return err_public(ERR_RATE,
		    "Too many requests are waiting. Try again in a moment.");
	e = git_read(r);
	scoreboard_long_end(rq->place);
	return e;
}

const struct err *
git_tip(struct req *rq, int64_t project_id, const struct git_ref *ref,
    struct git_commit *out)
{
	struct reading r = { .rq = rq,
		.what = ref->tag != NULL ? READ_TAGS : READ_COMMITS,
		.is_tip = true,
		.branch = ref->branch,
		.tag = ref->tag,
		.page = { .page = 1, .limit = 1 } };
	const struct err *e;

	*out = (struct git_commit){ .hash = NULL };
	if ((e = project_by_id(rq->db, rq->a, project_id, &r.project)) !=
		NULL ||
	    (e = read_waiting(&r)) != NULL)
		return e;
	if (r.list.n == 0)
		return err_public(ERR_NOTFOUND,
		    ref->tag != NULL ?
			"The repository has no tag with that name." :
			"The repository has no commits.");
	if (ref->tag == NULL)
		*out = *(const struct git_commit *)r.list.items;
	else
		out->hash = ((const struct forge_branch *)r.list.items)
				->commit_hash;
	return NULL;
}
