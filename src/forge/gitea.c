/* SPDX-License-Identifier: ISC */
/* Gitea and Forgejo, by their published API (/api/swagger). */
#include <string.h>

#include "forge/inner.h"

#define A(m, p, ...) JSON_PATH(struct forge_account, m, p, __VA_ARGS__)
#define R(m, p, ...) JSON_PATH(struct forge_repo, m, p, __VA_ARGS__)
#define B(m, p, ...) JSON_PATH(struct forge_branch, m, p, __VA_ARGS__)
#define C(m, p, ...) JSON_PATH(struct forge_commit, m, p, __VA_ARGS__)

static const struct json_path account[] = {
	A(id, "id", .must = true),
	A(login, "login", .must = true),
	A(name, "full_name", .must = false),
	A(email, "email", .must = false),
	A(avatar_url, "avatar_url", .must = false),
	JSON_PATH_END,
};
static const struct json_path repo[] = {
	R(id, "id", .must = true),
	R(path, "full_name", .must = true),
	R(default_branch, "default_branch", .must = false),
	R(url, "html_url", .must = false),
	R(empty, "empty", .must = false),
	JSON_PATH_END,
};
static const struct json_path branch[] = {
	B(name, "name", .must = true),
	B(commit_hash, "commit.id", .must = true),
	B(is_protected, "protected", .must = false),
	JSON_PATH_END,
};
static const struct json_path commit[] = {
	C(hash, "sha", .must = true),
	C(message, "commit.message", .must = false),
	C(author_name, "commit.author.name", .must = false),
	C(author_email, "commit.author.email", .must = false),
	C(committed_at, "commit.committer.date", .must = false),
	C(url, "html_url", .must = false),
	JSON_PATH_END,
};
static const struct json_path paging[] = {
	JSON_PATH(struct forge_paging, max, "max_response_items", .must = true),
	JSON_PATH_END,
};

/* Forgejo counts in another way and says so ("9.0.3+gitea-1.22.0"). */
static bool
is_forgejo(const char *version)
{
	return strstr(version, "gitea-") != NULL;
}

/* Gitea up to 1.25.4.  Of Forgejo nothing is known. */
static bool
forgets_challenge(const char *version)
{
	static const int64_t last[FORGE_VERSION] = { 1, 25, 4 };
	int64_t n[FORGE_VERSION];
	size_t i;

	if (is_forgejo(version) || !forge_version_read(version, n))
		return false;
	for (i = 0; i < FORGE_VERSION; i++)
		if (n[i] != last[i])
			return n[i] < last[i];
	return true;
}

/* Gitea since 1.25. Forgejo has "warning" in every version. */
static bool
knows_skipped(const char *version)
{
	int64_t n[FORGE_VERSION];

	return !is_forgejo(version) && forge_version_read(version, n) &&
	    (n[0] > 1 || (n[0] == 1 && n[1] >= 25));
}

const struct forge_ops forge_gitea = {
	.name = "gitea",
	.title = "Gitea",
	.api = "/api/v1",
	.clone_user = "slipway",
	.limit = "limit",
	.depth = 2,
	.form = {
		.alive = "/version",
		.account = "/user",
		.repo = "/repos/{path}",
		.repo_by_id = "/repositories/{id}",
		.branches = "/repos/{path}/branches",
		.branch = "/repos/{path}/branches/{branch}",
		/* by its full name: a tag of the same would come before */
		.commits = "/repos/{path}/commits?sha=refs/heads/{branch}"
			   "&stat=false&verification=false&files=false",
		.commit = "/repos/{path}/git/commits/{hash}"
			  "?stat=false&verification=false&files=false",
		.history = "/repos/{path}/commits?sha={hash}"
			   "&stat=false&verification=false&files=false",
		/* its comparison does not say where they part */
		.beyond = "/repos/{path}/commits?sha={hash}&not={branch}"
			  "&stat=false&verification=false&files=false",
		.status = "/repos/{path}/statuses/{hash}",
		.paging = "/settings/api",
		.repos = "/repos/search?archived=false&sort=updated&order=desc",
	},
	.repos = { .search = "q", .account = "uid", .member = "data" },
	.path = {
		.account = account,
		.repo = repo,
		.branch = branch,
		.commit = commit,
		.paging = paging,
	},
	.oauth = {
		.authorize = "/login/oauth/authorize",
		.token = "/login/oauth/access_token",
		.scopes = "read:user write:repository",
		.checks_redirect = true,
		.forgets_challenge = forgets_challenge,
	},
	.state = {
		[COMMIT_PENDING] = "pending",
		[COMMIT_RUNNING] = "pending",
		[COMMIT_SUCCESS] = "success",
		[COMMIT_FAILED] = "failure",
		[COMMIT_ERROR] = "error",
		[COMMIT_CANCELED] = "error",
		[COMMIT_APPROVAL] = "pending",
		[COMMIT_SKIPPED] = "warning",
	},
	.knows_skipped = knows_skipped,
	.context = "context",
};
