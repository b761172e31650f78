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
	       " confirmed_by = IF(server = VALUES(server)"
	       " AND repository = VALUES(repository), confirmed_by, NULL),"
	       " path = IF(server = VALUES(server)"
	       " AND repository = VALUES(repository)"
	       " AND repo_id <> VALUES(repo_id), path, VALUES(path)),"
	       " repo_id = IF(server = VALUES(server)"
	       " AND repository = VALUES(repository), repo_id,"
	       " VALUES(repo_id)),"
	       " server = VALUES(server), repository = VALUES(repository)",
	.args = repo_fields,
};

#define S(m) FIELD(struct git_setter, m, 0)
static const struct field setter_args[] = { R(server), R(repository),
	R(project_id), FIELD_END };
static const struct field setter_row[] = { S(set_by), S(repo_id), S(path),
	S(confirmed_by), FIELD_END };
static const struct stmt setter = {
	.name = "gitrepo_setter",
	.sql = "SELECT p.repository_by AS set_by, g.repo_id, g.path,"
	       " g.confirmed_by FROM project p LEFT JOIN git_repo g"
	       " ON g.project_id = p.id AND g.server = ?"
	       " AND g.repository = ? WHERE p.id = ?",
	.args = setter_args,
	.row = setter_row,
	.rowsize = sizeof(struct git_setter),
};

/* A user, and a repository that the user set or could read. */
struct user_repo {
	int64_t user_id;
	int64_t project_id;
	const char *server;
	const char *repository;
	const char *repo_id;
};
#define U(m) FIELD(struct user_repo, m, 0)
static const struct field confirm_args[] = { U(user_id), U(project_id),
	U(server), U(repository), U(repo_id), FIELD_END };
static const struct stmt confirm = {
	.name = "gitrepo_confirm",
	.sql = "UPDATE git_repo SET confirmed_by = ? WHERE project_id = ?"
	       " AND server = ? AND repository = ? AND repo_id = ?",
	.args = confirm_args,
};
static const struct field set_by_args[] = { U(user_id), U(project_id),
	FIELD_END };
static const struct stmt set_by = {
	.name = "gitrepo_set_by",
	.sql = "UPDATE project SET repository_by = ? WHERE id = ?",
	.args = set_by_args,
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

struct moved {
	int64_t project_id;
	const char *server;
	const char *repository;
	const char *repo_id;
	const char *address;
	struct git_follower by;
};
#define M(m) FIELD(struct moved, m, 0)
static const struct field follow_args[] = { M(server), M(repo_id), M(address),
	M(address), M(project_id), M(repository), FIELD_END };
static const struct stmt follow = {
	.name = "gitrepo_follow",
	.sql = "UPDATE project p JOIN git_repo g ON g.project_id = p.id"
	       " AND g.server = ? AND g.repository = p.repository"
	       " AND g.repo_id = ? SET p.repository = ?, g.repository = ?,"
	       " p.version = p.version + 1, p.updated_at = NOW(3)"
	       " WHERE p.id = ? AND p.repository = ? AND p.valid = 1",
	.args = follow_args,
};
static const struct field note_args[] = { M(by.user_id), M(by.username),
	M(by.via), M(by.token_id), M(by.address), M(project_id), M(project_id),
	M(repository), M(address), FIELD_END };
static const struct stmt follow_note = {
	.name = "gitrepo_follow_note",
	.sql = "INSERT INTO audit (user_id, username, via, token_name,"
	       " address, action, object_type, object_id, project_id, changes)"
	       " VALUES (?, ?, ?, (SELECT name FROM api_token WHERE id = ?),"
	       " ?, 'followRepository', 'project', ?, ?,"
	       " JSON_ARRAY(JSON_OBJECT('name', 'repository', 'from', ?,"
	       " 'to', ?)))",
	.args = note_args,
};

static const struct stmt *const gitrepo_stmts[] = {
	&follow,
	&follow_note,
	&find,
	&put,
	&forget,
	&setter,
	&confirm,
	&set_by,
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
gitrepo_confirm(struct db *db, const struct git_repo *repo, int64_t user_id)
{
	const struct user_repo args = { .user_id = user_id,
		.project_id = repo->project_id,
		.server = repo->server,
		.repository = repo->repository,
		.repo_id = repo->repo_id };
	const struct err *e;

	if ((e = gitrepo_put(db, repo)) != NULL)
		return e;
	return db_exec(db, &confirm, &args, NULL);
}

const struct err *
gitrepo_setter(struct db *db, struct arena *a, int64_t project_id,
    const char *server, const char *repository, struct git_setter *out)
{
	const struct git_repo args = { .project_id = project_id,
		.server = server,
		.repository = repository };

	return db_row(db, a, &setter, &args, out);
}

const struct err *
gitrepo_set_by(struct db *db, int64_t project_id, int64_t user_id)
{
	const struct user_repo args = { .user_id = user_id,
		.project_id = project_id };

	return db_exec(db, &set_by, &args, NULL);
}

static const struct err *
follow_body(struct db *db, void *context)
{
	const struct moved *moved = context;
	const struct err *e;
	struct db_done done;

	if ((e = db_exec(db, &follow, moved, &done)) != NULL ||
	    done.affected == 0)
		return e;
	return db_exec(db, &follow_note, moved, NULL);
}

const struct err *
gitrepo_follow(struct db *db, const struct git_repo *repo, const char *address,
    const struct git_follower *by)
{
	struct moved moved = { .project_id = repo->project_id,
		.server = repo->server,
		.repository = repo->repository,
		.repo_id = repo->repo_id,
		.address = address,
		.by = *by };

	return db_transaction(db, follow_body, &moved);
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
