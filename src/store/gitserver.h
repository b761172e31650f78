/* SPDX-License-Identifier: ISC */
/* What is stored under the address of a Git server: who its accounts are here,
 * their tokens, and the repositories of projects. */
#ifndef SLIPWAY_STORE_GITSERVER_H
#define SLIPWAY_STORE_GITSERVER_H

#include "db/db.h"

/* An address that live users are bound to. */
struct gitserver_users {
	const char *server;
	int64_t n;
};

/* Two live users of one account, under the old and the new address. */
struct gitserver_twins {
	const char *before;
	const char *after;
	const char *forge_id;
};

/* A project, deleted ones too. */
struct gitserver_project {
	int64_t id;
	const char *name;
	const char *repository;
	bool valid;
};

/* A repository that is remembered under an address. */
struct gitserver_repo {
	const char *repo_id;
	const char *path;
};

struct gitserver_moved {
	int64_t users;
	int64_t tokens;
	int64_t repositories; /* of which the number is known */
	int64_t claims;       /* of auth.admins */
};

MUSTCHECK const struct err *gitserver_bound(struct db *, struct arena *,
    struct list *out);
MUSTCHECK const struct err *gitserver_twins_find(struct db *, struct arena *,
    const char *before, const char *after, struct list *out);
MUSTCHECK const struct err *gitserver_projects(struct db *, struct arena *,
    struct list *out);
/* Some of those remembered under that address. */
MUSTCHECK const struct err *gitserver_repos(struct db *, struct arena *,
    const char *server, struct list *out);
/* Inside a transaction: all that is stored under `before`, but for the
 * addresses of projects, is under `after` from now on. */
MUSTCHECK const struct err *gitserver_move(struct db *, const char *before,
    const char *after, struct gitserver_moved *out);
/* Inside the same one: a project's new address.  What is known of its
 * repository stays. */
MUSTCHECK const struct err *gitserver_project_move(struct db *,
    const struct gitserver_project *, const char *address);

#endif
