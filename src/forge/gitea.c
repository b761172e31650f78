/* SPDX-License-Identifier: ISC */
/* Gitea and Forgejo, by their published API (/api/swagger). */
#include <string.h>

#include "core/num.h"
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

/* Gitea up to 1.25.4.  Forgejo counts in another way and says so
 * ("9.0.3+gitea-1.22.0"): of that nothing is known. */
static bool
forgets_challenge(const char *version)
{
	static const int64_t last[] = { 1, 25, 4 };
	char part[8];
	int64_t n;
	size_t i, len;

	if (strstr(version, "gitea-") != NULL)
		return false;
	for (i = 0; i < sizeof(last) / sizeof(last[0]); i++) {
		len = strspn(version, "0123456789");
		if (len == 0 || len >= sizeof(part))
			return false;
		(void)memcpy(part, version, len);
		part[len] = '\0';
		if (!num_parse(part, 0, NUM_SAFE, &n))
			return false;
		if (n != last[i])
			return n < last[i];
		version += len + (version[len] == '.' ? 1 : 0);
	}
	return true;
}

const struct forge_ops forge_gitea = {
	.name = "gitea",
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
	},
	.context = "context",
};
