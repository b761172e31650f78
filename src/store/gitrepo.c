/* SPDX-License-Identifier: ISC */
#include "store/gitrepo.h"

#include "core/str.h"
#include "store/store.h"

#define SMALL_ARENA ((size_t)16 << 10)

#define R(m) FIELD(struct git_repo, m, 0)
#define C(m) FIELD(struct branch_commits, m, 0)

#define G(m, fl, ...)                                                          \
	FIELD(struct git_commit, m, FIELD_OUT | FIELD_IN | (fl), __VA_ARGS__)

static const struct field git_commit_fields[] = {
	G(hash, FIELD_MUST, .doc = "Hash of the commit."),
	G(message, FIELD_NULL,
	    .doc = "Message of the commit; null if "
		   "unknown."),
	G(author_name, FIELD_NULL, .doc = "Name of the author."),
	G(author_email, FIELD_NULL, .doc = "Email address of the author."),
	G(committed_at, FIELD_NULL,
	    .doc = "Time of the commit; null if unknown."),
	G(url, FIELD_NULL, .doc = "Web page of the commit at the Git server."),
	FIELD_END,
};
const struct shape git_commit_shape = {
	.name = "GitCommit",
	.fields = git_commit_fields,
	.size = sizeof(struct git_commit),
	.doc = "A commit as the Git server reports it.",
};

static const struct field repo_fields[] = { R(project_id), R(server),
	R(repository), R(repo_id), R(path), FIELD_END };
static const struct field find_args[] = { R(project_id), R(server),
	R(repository), FIELD_END };
static const struct stmt find = {
	.name = "gitrepo_find",
	.sql = "SELECT project_id, server, repository, repo_id, path"
	       " FROM git_repo WHERE project_id = ? AND server = ?"
	       " AND repository = ?",
	.args = find_args,
	.row = repo_fields,
	.rowsize = sizeof(struct git_repo),
};
static const struct stmt put = {
	.name = "gitrepo_put",
	.sql = "INSERT INTO git_repo (project_id, server, repository, repo_id,"
	       " path) VALUES (?, ?, ?, ?, ?)"
	       " ON DUPLICATE KEY UPDATE"
	       " path = IF(server = VALUES(server)"
	       " AND repository = VALUES(repository)"
	       " AND repo_id <> VALUES(repo_id), path, VALUES(path)),"
	       " repo_id = IF(server = VALUES(server)"
	       " AND repository = VALUES(repository), repo_id,"
	       " VALUES(repo_id)),"
	       " server = VALUES(server), repository = VALUES(repository)",
	.args = repo_fields,
};

static const struct field commits_fields[] = { C(project_id), C(branch),
	C(commits), C(checked_at), FIELD_END };
static const struct field commits_find_args[] = { C(project_id), C(branch),
	FIELD_END };
static const struct stmt find_commits = {
	.name = "commits_find",
	.sql = "SELECT project_id, branch, commits, checked_at"
	       " FROM branch_commits WHERE project_id = ? AND branch = ?",
	.args = commits_find_args,
	.row = commits_fields,
	.rowsize = sizeof(struct branch_commits),
};
static const struct field commits_put_args[] = { C(project_id), C(branch),
	C(commits), FIELD_END };
static const struct stmt put_commits = {
	.name = "commits_put",
	.sql = "INSERT INTO branch_commits (project_id, branch, commits,"
	       " checked_at) VALUES (?, ?, ?, NOW(3))"
	       " ON DUPLICATE KEY UPDATE commits = VALUES(commits),"
	       " checked_at = NOW(3)",
	.args = commits_put_args,
};

static const struct field project_args[] = { C(project_id), FIELD_END };
static const struct stmt forget_commits = {
	.name = "commits_forget",
	.sql = "DELETE FROM branch_commits WHERE project_id = ?",
	.args = project_args,
};

static const struct field forget_args[] = { R(project_id), FIELD_END };
static const struct stmt forget = {
	.name = "gitrepo_forget",
	.sql = "DELETE FROM git_repo WHERE project_id = ?",
	.args = forget_args,
};

static const struct stmt *const gitrepo_stmts[] = {
	&find,
	&put,
	&forget,
	&find_commits,
	&put_commits,
	&forget_commits,
	NULL,
};

const struct store gitrepo_store = {
	.stmts = gitrepo_stmts,
};

const struct err *
gitrepo_find(struct db *db, struct arena *a, int64_t project_id,
    const char *server, const char *repository, struct git_repo *out)
{
	const struct git_repo args = { .project_id = project_id,
		.server = server,
		.repository = repository };

	return db_row(db, a, &find, &args, out);
}

/* Listing branches must not write to the database each time. */
const struct err *
gitrepo_put(struct db *db, const struct git_repo *repo)
{
	struct arena *a = arena_open(SMALL_ARENA);
	const struct err *e;
	struct git_repo had;

	e = gitrepo_find(db, a, repo->project_id, repo->server,
	    repo->repository, &had);
	if (e != NULL && e->code != ERR_NOTFOUND)
		goto out;
	if (e == NULL && str_eq(had.repo_id, repo->repo_id) &&
	    str_eq(had.path, repo->path))
		goto out;
	e = db_exec(db, &put, repo, NULL);
out:
	arena_close(a);
	return e;
}

const struct err *
gitrepo_forget(struct db *db, int64_t project_id)
{
	const struct git_repo args = { .project_id = project_id };

	return db_exec(db, &forget, &args, NULL);
}

const struct err *
commits_find(struct db *db, struct arena *a, int64_t project_id,
    const char *branch, struct branch_commits *out)
{
	const struct branch_commits args = { .project_id = project_id,
		.branch = branch };

	return db_row(db, a, &find_commits, &args, out);
}

const struct err *
commits_put(struct db *db, const struct branch_commits *commits)
{
	return db_exec(db, &put_commits, commits, NULL);
}

const struct err *
commits_forget(struct db *db, int64_t project_id)
{
	const struct branch_commits args = { .project_id = project_id };

	return db_exec(db, &forget_commits, &args, NULL);
}
