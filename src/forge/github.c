/* SPDX-License-Identifier: ISC */
/* GitHub and GitHub Enterprise Server, by their published REST API of
 * 2022-11-28. */
#include "forge/inner.h"

#define A(m, p, ...) JSON_PATH(struct forge_account, m, p, __VA_ARGS__)
#define R(m, p, ...) JSON_PATH(struct forge_repo, m, p, __VA_ARGS__)
#define B(m, p, ...) JSON_PATH(struct forge_branch, m, p, __VA_ARGS__)
#define C(m, p, ...) JSON_PATH(struct forge_commit, m, p, __VA_ARGS__)

static const struct json_path account[] = {
	A(id, "id", .must = true),
	A(login, "login", .must = true),
	A(name, "name", .must = false),
	A(email, "email", .must = false),
	A(avatar_url, "avatar_url", .must = false),
	JSON_PATH_END,
};
static const struct json_path repo[] = {
	R(id, "id", .must = true),
	R(path, "full_name", .must = true),
	R(default_branch, "default_branch", .must = false),
	R(url, "html_url", .must = false),
	JSON_PATH_END,
};
static const struct json_path branch[] = {
	B(name, "name", .must = true),
	B(commit_hash, "commit.sha", .must = true),
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

static const struct json_path base[] = {
	C(hash, "merge_base_commit.sha", .must = true),
	JSON_PATH_END,
};

const struct forge_ops forge_github = {
	.name = "github",
	.title = "GitHub",
	.api = "/api/v3",
	.cloud = "https://github.com",
	.cloud_api = "https://api.github.com",
	.clone_user = "x-access-token",
	.limit = "per_page",
	.depth = 2,
	.header = {
		{ "Accept", "application/vnd.github+json" },
		{ "X-GitHub-Api-Version", "2022-11-28" },
	},
	.form = {
		.alive = "/meta",
		.account = "/user",
		.repo = "/repos/{path}",
		.repo_by_id = "/repositories/{id}",
		.branches = "/repos/{path}/branches",
		.commits = "/repos/{path}/commits?sha={branch}",
		/* the first page would list the files */
		.commit = "/repos/{path}/commits/{hash}?per_page=1&page=2",
		.history = "/repos/{path}/commits?sha={hash}",
		/* as above */
		.base = "/repos/{path}/compare/{branch}...{hash}"
			"?per_page=1&page=2",
		.status = "/repos/{path}/statuses/{hash}",
		.repos = "/user/repos?sort=pushed",
	},
	.path = {
		.account = account,
		.repo = repo,
		.branch = branch,
		.commit = commit,
		.base = base,
	},
	.oauth = {
		.authorize = "/login/oauth/authorize",
		.token = "/login/oauth/access_token",
		.scopes = "read:user repo",
		.needs_secret = true,
	},
	.state = {
		[COMMIT_PENDING] = "pending",
		[COMMIT_RUNNING] = "pending",
		[COMMIT_SUCCESS] = "success",
		[COMMIT_FAILED] = "failure",
		[COMMIT_ERROR] = "error",
		[COMMIT_CANCELED] = "error",
		[COMMIT_APPROVAL] = "pending",
		/* the only one that claims neither success nor failure */
		[COMMIT_SKIPPED] = "pending",
	},
	.context = "context",
};
