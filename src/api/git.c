/* SPDX-License-Identifier: ISC */
/* Branches and commits of a project's repository. They come from the Git
 * server's API, or, if there is none or the repository is elsewhere, from the
 * Git protocol and the runner's clone. */
#include "api/git.h"

#include "api/board.h"
#include "api/forge.h"
#include "api/resources.h"
#include "core/branch.h"
#include "core/str.h"
#include "deploy/repository.h"
#include "store/gitrepo.h"
#include "store/project.h"

/* Minimum time in ms that must be left for the Git server. The limit covers the
 * whole request, including its wait for a worker, because the client must get a
 * response within ten seconds. */
#define LEFT_MIN 200
/* Limits on what git reports about a repository. */
#define REMOTE_MAX ((size_t)12 << 20)
#define REMOTE_BRANCHES 1000000

#define B(m, ...) FIELD(struct forge_branch, m, FIELD_OUT, __VA_ARGS__)

static const struct field git_branch_fields[] = {
	B(name, .doc = "Name of the branch."),
	B(commit_hash, .doc = "Commit at the tip of the branch."),
	B(is_protected, .outside = "protected",
	    .doc = "Whether the Git server protects the branch."),
	B(is_default, .outside = "default",
	    .doc = "Whether it is the default branch of the repository."),
	FIELD_END,
};
static const struct shape git_branch_shape = {
	.name = "GitBranch",
	.fields = git_branch_fields,
	.size = sizeof(struct forge_branch),
	.doc = "A branch as the Git server reports it.",
};

/* A request and its result. */
struct reading {
	struct req *rq;
	struct project project;
	bool commits;            /* else branches */
	bool is_tip;             /* only the newest commit, not a stored one */
	int64_t until;           /* time_mono_ms */
	const char *branch;      /* NULL = the repository's default */
	struct forge_repo known; /* as stored, else by its path */
	struct forge_repo repo;
	bool trusted; /* the result may be stored for all users */
	struct forge_page page;
	struct list list; /* struct forge_branch or git_commit */
};

/* --- the Git server's API */

/* When a repository is renamed or removed, another user can take its name, and
 * the caller may not have access to the renamed one. So a stored repository id
 * is never replaced by what a path leads to; that takes a change of the
 * project. Gitea serves requests by id only with a token. */
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
		    "project's repository again, alone (PUT /api/projects).");
	if (e == NULL && !str_eq(r->repo.id, r->known.id))
		return err_public(ERR_NOTFOUND,
		    "Another repository at the Git server has taken the name "
		    "of the project's repository (404). If it is the right "
		    "one, a maintainer must send the project's repository "
		    "again, alone (PUT /api/projects).");
	return e;
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

	e = forge_commits(forge, a, token, &r->repo,
	    r->branch != NULL ? r->branch : r->repo.default_branch, &r->page,
	    &got);
	if (e != NULL)
		return e;
	from = got.items;
	to = arena_alloc(a, got.n, sizeof(*to));
	for (i = 0; i < got.n; i++)
		to[i] = (struct git_commit){ .hash = from[i].hash,
			.message = from[i].message,
			.author_name = from[i].author_name,
			.author_email = from[i].author_email,
			.committed_at = from[i].committed_at,
			.url = from[i].url };
	r->list = (struct list){ .items = to, .n = got.n };
	return NULL;
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
	if ((e = repo_find(r, forge, token->text)) != NULL)
		return e;
	if (r->commits)
		return commits_read(r, forge, token->text);
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
	return gitrepo_put(r->rq->db, &known);
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
	const struct forge_branch *from;
	struct forge_branch *to;
	const struct err *e;
	struct list got;
	size_t i;

	if ((e = remote_read(r, own, &r->page, &got)) != NULL)
		return e;
	from = got.items;
	to = arena_alloc(r->rq->a, got.n, sizeof(*to));
	for (i = 0; i < got.n; i++) {
		to[i] = from[i];
		to[i].name = arena_strdup(r->rq->a, from[i].name);
		to[i].commit_hash = arena_strdup(r->rq->a, from[i].commit_hash);
	}
	r->list = (struct list){ .items = to, .n = got.n };
	return NULL;
}

/* The tip of the requested branch or of the default branch; NULL if the
 * repository has no branches. */
static const struct err *
remote_tip(const struct reading *r, struct arena *own,
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

static const struct err *
from_git(struct reading *r)
{
	struct arena *own = arena_open(REMOTE_MAX);
	const struct err *e;

	e = r->commits ? remote_commits(r, own) : remote_branches(r, own);
	arena_close(own);
	return e;
}

/* --- choice of the source, and the response */

static const struct err *
read_it(struct reading *r)
{
	const struct req *rq = r->rq;
	struct forge *forge = rq->access->forge;
	const struct err *e;

	r->until = time_mono_ms() + rq->settings->gitserver.timeout * 1000 -
	    req_waited(rq);
	if (r->until < time_mono_ms() + LEFT_MIN)
		return err_public(ERR_UPSTREAM_TIMEOUT,
		    "The Git server did not respond in time to earlier requests. "
		    "Try again later.");
	if (forge == NULL && !str_eq(rq->settings->gitserver.type, "git"))
		return gitserver_missing(rq, "Reading from the Git server", 1);
	if (forge == NULL || !forge_has_api(forge))
		return from_git(r);
	e = forge_repo_of(forge, rq->a, r->project.repository, &r->repo);
	if (e == NULL)
		return from_server(r);
	return e->code == ERR_NOTFOUND ? from_git(r) : e;
}

/* Maps an error to what the client must see: 401 would mean that its own
 * session has expired, and a missing setting is not an internal error. */
static const struct err *
for_client(const struct err *e)
{
	if (e->code == ERR_UNAUTHENTICATED)
		return err_as(e, ERR_UPSTREAM, e->sys);
	if (e->code == ERR_CONFIG && e->detail[0] != '\0')
		return err_as(e, ERR_UNAVAILABLE, e->sys);
	return e;
}

/* A Git server can take long, so this counts as waiting: some workers stay free
 * for other requests. */
static const struct err *
read_waiting(struct reading *r)
{
	struct req *rq = r->rq;
	const struct err *e;

	if (board_long_begin(rq->board, rq->place, rq->who.user_id) !=
	    BOARD_LONG_YES)
		return err_public(ERR_RATE,
		    "Too many requests are waiting. Try again in a moment.");
	if ((e = read_it(r)) != NULL)
		e = for_client(e);
	board_long_end(rq->place);
	return e;
}

const struct err *
git_tip(struct req *rq, int64_t project_id, const char *branch,
    const char **out)
{
	struct reading r = { .rq = rq,
		.commits = true,
		.is_tip = true,
		.branch = branch,
		.page = { .page = 1, .limit = 1 } };
	const struct git_commit *tip;
	const struct err *e;

	*out = NULL;
	if ((e = project_by_id(rq->db, rq->a, project_id, &r.project)) !=
		NULL ||
	    (e = read_waiting(&r)) != NULL)
		return e;
	if (r.list.n == 0)
		return err_public(ERR_NOTFOUND,
		    "The repository has no commits.");
	tip = r.list.items;
	*out = tip->hash;
	return NULL;
}

static const struct err *
reading_serve(struct reading *r, const struct shape *shape)
{
	struct req *rq = r->rq;
	const struct err *e;
	const char *wrong;

	e = project_by_id(rq->db, rq->a, req_int(rq, "projectId"), &r->project);
	if (e != NULL && e->code == ERR_NOTFOUND)
		return err_public(ERR_NOTFOUND, "Unknown project.");
	if (e != NULL)
		return e;
	r->page.page = req_int(rq, "page");
	r->page.limit = req_int(rq, "limit");
	/* git would interpret "main~1" and "a..b", but they are not branches */
	if (r->branch != NULL && *r->branch != '\0' &&
	    (wrong = branch_fault(r->branch)) != NULL)
		return err_public(ERR_NOTFOUND, "Unknown branch: the name %s.",
		    wrong);
	if (r->commits && r->branch == NULL)
		r->branch = r->project.default_branch;
	if ((e = read_it(r)) != NULL)
		return for_client(e);
	answer_more(rq, shape, &r->list,
	    &(struct page_part){ .page = r->page.page,
		.limit = r->page.limit,
		.has_more = r->page.has_more });
	return NULL;
}

static const struct err *
api_git_branches(struct req *rq)
{
	struct reading r = { .rq = rq };

	return reading_serve(&r, &git_branch_shape);
}

static const struct err *
api_git_commits(struct req *rq)
{
	struct reading r = { .rq = rq,
		.commits = true,
		.branch = req_str(rq, "branch") };

	return reading_serve(&r, &git_commit_shape);
}

static const struct route_param branch_params[] = {
	ROUTE_PAGE,
	{ .name = "projectId",
	    .type = PARAM_INT,
	    .must = 1,
	    .min = ID_MIN,
	    .doc = "Project whose repository to read." },
	PARAM_END,
};
static const struct route_param commit_params[] = {
	ROUTE_PAGE,
	{ .name = "projectId",
	    .type = PARAM_INT,
	    .must = 1,
	    .min = ID_MIN,
	    .doc = "Project whose repository to read." },
	{ .name = "branch",
	    .type = PARAM_STR,
	    .max = 255,
	    .doc = "Branch; the default is the repository's default branch." },
	PARAM_END,
};
static const enum err_code upstream[] = { ERR_NOTFOUND, ERR_RATE, ERR_UPSTREAM,
	ERR_UPSTREAM_TIMEOUT, ERR__MAX };

static const struct route routes[] = {
	{ .method = METHOD_GET,
	    .path = "/api/git/branches",
	    .role = ROLE_VIEWER,
	    .pool = POOL_SLOW,
	    .query = branch_params,
	    .handler = api_git_branches,
	    .operation = "listBranches",
	    .summary = "List the branches of a project's repository",
	    .out = &git_branch_shape,
	    .list = LIST_MORE,
	    .status = 200,
	    .errors = upstream },
	{ .method = METHOD_GET,
	    .path = "/api/git/commits",
	    .role = ROLE_VIEWER,
	    .pool = POOL_SLOW,
	    .query = commit_params,
	    .handler = api_git_commits,
	    .operation = "listCommits",
	    .summary = "List the commits of a project's repository",
	    .out = &git_commit_shape,
	    .list = LIST_MORE,
	    .status = 200,
	    .errors = upstream },
	ROUTE_END,
};

const struct resource git_resource = {
	.tag = "git",
	.about = "Branches and commits, read live from the Git server.",
	.routes = routes,
};
