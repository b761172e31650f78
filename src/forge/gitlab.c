/* SPDX-License-Identifier: ISC */
/* GitLab, by its published REST API, version 4. */
#include "forge/inner.h"

#define A(m, p, ...) JSON_PATH(struct forge_account, m, p, __VA_ARGS__)
#define R(m, p, ...) JSON_PATH(struct forge_repo, m, p, __VA_ARGS__)
#define B(m, p, ...) JSON_PATH(struct forge_branch, m, p, __VA_ARGS__)
#define C(m, p, ...) JSON_PATH(struct forge_commit, m, p, __VA_ARGS__)

static const struct json_path account[] = {
	A(id, "id", .must = true),
	A(login, "username", .must = true),
	A(name, "name", .must = false),
	A(email, "email", .must = false),
	A(avatar_url, "avatar_url", .must = false),
	JSON_PATH_END,
};
static const struct json_path repo[] = {
	R(id, "id", .must = true),
	R(path, "path_with_namespace", .must = true),
	R(default_branch, "default_branch", .must = false),
	R(url, "web_url", .must = false),
	R(empty, "empty_repo", .must = false),
	JSON_PATH_END,
};
static const struct json_path branch[] = {
	B(name, "name", .must = true),
	B(commit_hash, "commit.id", .must = true),
	B(is_protected, "protected", .must = false),
	JSON_PATH_END,
};
static const struct json_path commit[] = {
	C(hash, "id", .must = true),
	C(message, "message", .must = false),
	C(author_name, "author_name", .must = false),
	C(author_email, "author_email", .must = false),
	C(committed_at, "committed_date", .must = false),
	C(url, "web_url", .must = false),
	JSON_PATH_END,
};

/* RFC 7009 */
static const struct err *
token_revoke(struct forge *f, struct arena *a, const char *access)
{
	const struct settings_gitserver *s = f->settings;
	struct http_response got;
	const struct err *e;
	const char *body;

	body = arena_printf(a, "token=%s&client_id=%s", http_escape(a, access),
	    http_escape(a, s->client_id));
	if (s->client_secret != NULL && s->client_secret[0] != '\0')
		body = arena_printf(a, "%s&client_secret=%s", body,
		    http_escape(a, s->client_secret));
	if ((e = forge_ask(f, a,
		 &(struct forge_ask){ .method = HTTP_POST,
		     .url = arena_printf(a, "%s/oauth/revoke", f->server),
		     .body = body,
		     .type = "application/x-www-form-urlencoded" },
		 &got)) != NULL)
		return e;
	return forge_judge(f, a, &got);
}

static bool
knows_skipped(const char *version)
{
	int64_t n[FORGE_VERSION];

	return forge_version_read(version, n) && n[0] >= 18;
}

const struct forge_ops forge_gitlab = {
	.name = "gitlab",
	.title = "GitLab",
	.api = "/api/v4",
	.clone_user = "oauth2",
	.limit = "per_page",
	.depth = 20,
	.form = {
		.alive = "/version",
		.account = "/user",
		.repo = "/projects/{project}",
		.repo_by_id = "/projects/{id}",
		.branches = "/projects/{id}/repository/branches",
		.branch = "/projects/{id}/repository/branches/{branch}",
		.commits = "/projects/{id}/repository/commits"
			   "?ref_name={branch}",
		.commit = "/projects/{id}/repository/commits/{hash}"
			  "?stats=false",
		.history = "/projects/{id}/repository/commits"
			   "?ref_name={hash}",
		.base = "/projects/{id}/repository/merge_base"
			"?refs%5B%5D={branch}&refs%5B%5D={hash}",
		.status = "/projects/{id}/statuses/{hash}",
		.repos = "/projects?membership=true&archived=false&simple=true"
			 "&order_by=last_activity_at&search_namespaces=true",
	},
	.repos = { .search = "search" },
	.path = {
		.account = account,
		.repo = repo,
		.branch = branch,
		.commit = commit,
		.base = commit,
	},
	.oauth = {
		.authorize = "/oauth/authorize",
		.token = "/oauth/token",
		.scopes = "read_user api",
		.revoke = token_revoke,
	},
	.state = {
		[COMMIT_PENDING] = "pending",
		[COMMIT_RUNNING] = "running",
		[COMMIT_SUCCESS] = "success",
		[COMMIT_FAILED] = "failed",
		[COMMIT_ERROR] = "failed",
		[COMMIT_CANCELED] = "canceled",
		[COMMIT_APPROVAL] = "pending",
		[COMMIT_SKIPPED] = "canceled",
	},
	.knows_skipped = knows_skipped,
	.context = "name",
	.ref = "ref",
	.done = "Cannot transition status",
};
