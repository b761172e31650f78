/* SPDX-License-Identifier: ISC */
/* What is stored under the URL of a Git server: the accounts of users, their
 * tokens, and the repositories of projects. */
#ifndef SLIPWAY_STORE_GITSERVER_H
#define SLIPWAY_STORE_GITSERVER_H

#include "db/db.h"

/* A URL that live users are bound to. */
struct gitserver_users {
	const char *server;
	int64_t n;
};

/* Two live users with the same account id, under the old and the new URL. */
struct gitserver_twins {
	const char *before;
	const char *after;
	const char *forge_id;
};

/* A project, live or deleted. */
struct gitserver_project {
	int64_t id;
	const char *name;
	const char *repository;
	bool valid;
};

/* A stored repository. */
struct gitserver_repo {
	const char *repo_id;
	const char *path;
};

struct gitserver_moved {
	int64_t users;
	int64_t tokens;
	int64_t repositories; /* whose id is known */
	int64_t claims;       /* of auth.admins */
};

MUSTCHECK const struct err *gitserver_bound(struct db *, struct arena *,
    struct list *out);
MUSTCHECK const struct err *gitserver_twins_find(struct db *, struct arena *,
    const char *before, const char *after, struct list *out);
MUSTCHECK const struct err *gitserver_projects(struct db *, struct arena *,
    struct list *out);
/* Returns some of the repositories stored under that URL. */
MUSTCHECK const struct err *gitserver_repos(struct db *, struct arena *,
    const char *server, struct list *out);
/* Inside a transaction: moves everything stored under `before` to `after`,
 * except the URLs of projects. */
MUSTCHECK const struct err *gitserver_move(struct db *, const char *before,
    const char *after, struct gitserver_moved *out);
/* In the same transaction: sets a project's new URL. The stored data about its
 * repository stays. */
MUSTCHECK const struct err *gitserver_project_move(struct db *,
    const struct gitserver_project *, const char *address);

#endif
