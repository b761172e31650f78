/* SPDX-License-Identifier: ISC */
#include "api/git_read.h"
#include "api/resources.h"
#include "core/branch.h"
#include "store/gitrepo.h"

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

static const struct field git_tag_fields[] = {
	B(name, .doc = "Name of the tag."),
	B(commit_hash, .doc = "Commit that the tag points to."),
	FIELD_END,
};
static const struct shape git_tag_shape = {
	.name = "GitTag",
	.fields = git_tag_fields,
	.size = sizeof(struct forge_branch),
	.doc = "A tag as the Git server reports it.",
};

#define G(m, ...) FIELD(struct git_repository, m, FIELD_OUT, __VA_ARGS__)

static const struct field git_repository_fields[] = {
	G(path, .doc = "Its name, with that of its owner."),
	G(repository, .doc = "Its URL, for the project's repository."),
	FIELD(struct git_repository, default_branch, FIELD_OUT | FIELD_NULL,
	    .doc = "Its default branch, if it is known."),
	FIELD(struct git_repository, url, FIELD_OUT | FIELD_NULL,
	    .doc = "Its page at the Git server."),
	FIELD_END,
};
static const struct shape git_repository_shape = {
	.name = "GitRepository",
	.fields = git_repository_fields,
	.size = sizeof(struct git_repository),
	.doc = "A repository at the Git server.",
};

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
	if (r->what == READ_COMMITS && r->branch == NULL)
		r->branch = r->project.default_branch;
	if ((e = git_read(r)) != NULL)
		return e;
	answer_more(rq, shape, &r->list,
	    &(struct page_part){ .page = r->page.page,
		.limit = r->page.limit,
		.has_more = r->page.has_more });
	return NULL;
}

static const struct err *
api_git_branches(struct req *rq)
{
	return reading_serve(&(struct reading){ .rq = rq }, &git_branch_shape);
}

static const struct err *
api_git_tags(struct req *rq)
{
	struct reading r = { .rq = rq, .what = READ_TAGS };

	return reading_serve(&r, &git_tag_shape);
}

static const struct err *
api_git_commits(struct req *rq)
{
	struct reading r = { .rq = rq,
		.what = READ_COMMITS,
		.branch = req_str(rq, "branch") };

	return reading_serve(&r, &git_commit_shape);
}

static const struct err *
api_git_repositories(struct req *rq)
{
	struct forge_page page = { .page = req_int(rq, "page"),
		.limit = req_int(rq, "limit") };
	const struct err *e;
	struct list list;

	e = git_repositories(rq, req_str(rq, "search"), &page, &list);
	if (e != NULL)
		return e;
	answer_more(rq, &git_repository_shape, &list,
	    &(struct page_part){ .page = page.page,
		.limit = page.limit,
		.has_more = page.has_more });
	return NULL;
}

#define OF_PROJECT                                                             \
	{                                                                      \
		.name = "projectId", .type = PARAM_INT, .must = 1,             \
		.min = ID_MIN, .doc = "Project whose repository to read."      \
	}
static const struct route_param ref_params[] = { ROUTE_PAGE, OF_PROJECT,
	PARAM_END };
static const struct route_param commit_params[] = {
	ROUTE_PAGE,
	OF_PROJECT,
	{ .name = "branch",
	    .type = PARAM_STR,
	    .max = 255,
	    .doc = "Branch; the default is the repository's default branch." },
	PARAM_END,
};
static const struct route_param repository_params[] = {
	ROUTE_PAGE,
	{ .name = "search",
	    .type = PARAM_STR,
	    .max = 100,
	    .doc = "Part of the name." },
	PARAM_END,
};
static const enum err_code upstream[] = { ERR_NOTFOUND, ERR_RATE, ERR_UPSTREAM,
	ERR_UPSTREAM_TIMEOUT, ERR__MAX };

static const struct route routes[] = {
	{ .method = METHOD_GET,
	    .path = "/api/git/branches",
	    .role = ROLE_VIEWER,
	    .pool = POOL_SLOW,
	    .query = ref_params,
	    .handler = api_git_branches,
	    .operation = "listBranches",
	    .summary = "List the branches of a project's repository",
	    .out = &git_branch_shape,
	    .list = LIST_MORE,
	    .status = 200,
	    .errors = upstream },
	{ .method = METHOD_GET,
	    .path = "/api/git/tags",
	    .role = ROLE_VIEWER,
	    .pool = POOL_SLOW,
	    .query = ref_params,
	    .handler = api_git_tags,
	    .operation = "listTags",
	    .summary = "List the tags of a project's repository, higher "
		       "versions first",
	    .out = &git_tag_shape,
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
	{ .method = METHOD_GET,
	    .path = "/api/git/repositories",
	    .role = ROLE_MAINTAINER,
	    .pool = POOL_SLOW,
	    .query = repository_params,
	    .handler = api_git_repositories,
	    .operation = "listRepositories",
	    .summary = "List the repositories of the caller's account at the "
		       "Git server",
	    .out = &git_repository_shape,
	    .list = LIST_MORE,
	    .status = 200,
	    .errors = upstream + 1 },
	ROUTE_END,
};

const struct resource git_resource = {
	.tag = "git",
	.about = "Repositories, branches, tags and commits, read live from the "
		 "Git server.",
	.routes = routes,
};
