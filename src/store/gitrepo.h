/* SPDX-License-Identifier: ISC */
/* What is stored about a project's repository: its id at the Git server, and
 * commits from the runner's clone. */
#ifndef SLIPWAY_STORE_GITREPO_H
#define SLIPWAY_STORE_GITREPO_H

#include "db/db.h"

struct git_repo {
	int64_t project_id;
	const char *server;
	const char *repository; /* URL of the project to which this applies */
	const char *repo_id;
	const char *path;
};

/* Who set the repository of a project, and what is stored about it. */
struct git_setter {
	struct maybe set_by; /* not set = an earlier version did it */
	const char *repo_id; /* NULL = unknown, like the next two */
	const char *path;
	struct maybe confirmed_by; /* could read it, by its number */
};

/* Who notices that a repository was renamed. */
struct git_follower {
	struct maybe user_id; /* not set = a runner */
	const char *username; /* or the name of the runner */
	const char *via;
	struct maybe token_id;
	const char *address; /* of the client; NULL = none */
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

/* ERR_NOTFOUND also if it was stored for another server or URL. */
MUSTCHECK const struct err *gitrepo_find(struct db *, struct arena *,
    int64_t project_id, const char *server, const char *repository,
    struct git_repo *out);
/* Writes only changes. As long as the project's URL stays the same, an id is
 * never replaced by another. */
MUSTCHECK const struct err *gitrepo_put(struct db *, const struct git_repo *);
/* The same; the id was found with the access of that user. */
MUSTCHECK const struct err *gitrepo_confirm(struct db *,
    const struct git_repo *, int64_t user_id);
/* ERR_NOTFOUND if there is no such project. */
MUSTCHECK const struct err *gitrepo_setter(struct db *, struct arena *,
    int64_t project_id, const char *server, const char *repository,
    struct git_setter *out);
/* Inside the transaction that changes it: records who sets the repository. */
MUSTCHECK const struct err *gitrepo_set_by(struct db *, int64_t project_id,
    int64_t user_id);
/* The repository was renamed or transferred: the project gets its new address,
 * unless its address has changed, too. The audit log names who noticed. */
MUSTCHECK const struct err *gitrepo_follow(struct db *, const struct git_repo *,
    const char *address, const struct git_follower *);
/* Forgets the id; the next request finds the repository by its URL. */
MUSTCHECK const struct err *gitrepo_forget(struct db *, int64_t project_id);

MUSTCHECK const struct err *commits_find(struct db *, struct arena *,
    int64_t project_id, const char *branch, struct branch_commits *out);
/* Replaces the stored commits; `checked_at` becomes the current time. */
MUSTCHECK const struct err *commits_put(struct db *,
    const struct branch_commits *);
/* Deletes the commits of all branches, because the repository changed. */
MUSTCHECK const struct err *commits_forget(struct db *, int64_t project_id);

#endif
