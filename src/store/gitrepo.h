/* SPDX-License-Identifier: ISC */
/* What is remembered of a project's repository: the Git server's number of it,
 * and commits as the runner's clone has them. */
#ifndef SLIPWAY_STORE_GITREPO_H
#define SLIPWAY_STORE_GITREPO_H

#include "db/db.h"

struct git_repo {
	int64_t project_id;
	const char *server;
	const char *repository; /* the project's address that it belongs to */
	const char *repo_id;
	const char *path;
};

struct git_commit {
	const char *hash;
	const char *message;
	const char *author_name;
	const char *author_email;
	struct when committed_at;
	const char *url;
};

struct branch_commits {
	int64_t project_id;
	const char *branch;
	struct json_text commits; /* of git_commit_shape, newest first */
	struct when checked_at;
};

extern const struct shape git_commit_shape;

/* ERR_NOTFOUND, also where server or repository are others now. */
MUSTCHECK const struct err *gitrepo_find(struct db *, struct arena *,
    int64_t project_id, const char *server, const char *repository,
    struct git_repo *out);
/* Writes only what has changed.  While the project's address stays the same a
 * number never takes the place of another. */
MUSTCHECK const struct err *gitrepo_put(struct db *, const struct git_repo *);
/* The next request finds the repository by the project's address again. */
MUSTCHECK const struct err *gitrepo_forget(struct db *, int64_t project_id);

MUSTCHECK const struct err *commits_find(struct db *, struct arena *,
    int64_t project_id, const char *branch, struct branch_commits *out);
/* In place of those before; `checked_at` is the database's present. */
MUSTCHECK const struct err *commits_put(struct db *,
    const struct branch_commits *);
/* Those of all branches: the project has another repository. */
MUSTCHECK const struct err *commits_forget(struct db *, int64_t project_id);

#endif
