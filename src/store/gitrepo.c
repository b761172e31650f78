/* SPDX-License-Identifier: ISC */
#include "store/gitrepo.h"

#include "core/str.h"
#include "store/store.h"

#define SMALL_ARENA ((size_t)16 << 10)

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

/* A user, and a repository that the user set or could read. */
struct user_repo {
	int64_t user_id;
	int64_t project_id;
	const char *server;
	const char *repository;
	const char *repo_id;
};
struct moved {
	int64_t project_id;
	const char *server;
	const char *repository;
	const char *repo_id;
	const char *address;
	struct git_follower by;
};

#include "store/gitrepo.sql.h"

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

	return db_row(db, a, &sql_gitrepo_find, &args, out);
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
	e = db_exec(db, &sql_gitrepo_put, repo, NULL);
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
	return db_exec(db, &sql_gitrepo_confirm, &args, NULL);
}

const struct err *
gitrepo_setter(struct db *db, struct arena *a, int64_t project_id,
    const char *server, const char *repository, struct git_setter *out)
{
	const struct git_repo args = { .project_id = project_id,
		.server = server,
		.repository = repository };

	return db_row(db, a, &sql_gitrepo_setter, &args, out);
}

const struct err *
gitrepo_set_by(struct db *db, int64_t project_id, int64_t user_id)
{
	const struct user_repo args = { .user_id = user_id,
		.project_id = project_id };

	return db_exec(db, &sql_gitrepo_set_by, &args, NULL);
}

static const struct err *
follow_body(struct db *db, void *context)
{
	const struct moved *moved = context;
	const struct err *e;
	struct db_done done;

	if ((e = db_exec(db, &sql_gitrepo_follow, moved, &done)) != NULL ||
	    done.affected == 0)
		return e;
	return db_exec(db, &sql_gitrepo_follow_note, moved, NULL);
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

	return db_exec(db, &sql_gitrepo_forget, &args, NULL);
}

const struct err *
commits_find(struct db *db, struct arena *a, int64_t project_id,
    const char *branch, struct branch_commits *out)
{
	const struct branch_commits args = { .project_id = project_id,
		.branch = branch };

	return db_row(db, a, &sql_commits_find, &args, out);
}

const struct err *
commits_put(struct db *db, const struct branch_commits *commits)
{
	return db_exec(db, &sql_commits_put, commits, NULL);
}

const struct err *
commits_forget(struct db *db, int64_t project_id)
{
	const struct branch_commits args = { .project_id = project_id };

	return db_exec(db, &sql_commits_forget, &args, NULL);
}
