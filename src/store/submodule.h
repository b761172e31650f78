/* SPDX-License-Identifier: ISC */
/* Which repositories of the Git server a project's deployments read for
 * submodules. */
#ifndef SLIPWAY_STORE_SUBMODULE_H
#define SLIPWAY_STORE_SUBMODULE_H

#include "db/db.h"

#define SUBMODULE_PATH_ERE "[A-Za-z0-9_.~+-]+(/[A-Za-z0-9_.~+-]+)+"

/* An item of a project's list. */
struct submodule_path {
	const char *path; /* "owner/name" at the Git server */
};

/* A number that the user who set the list has found at the server. */
struct submodule {
	int64_t project_id;
	const char *server;
	const char *path;
	const char *repo_id;
};

extern const struct shape submodule_path_shape;

/* Inside the transaction that sets a project's list: records who sets it, and
 * forgets the numbers. */
MUSTCHECK const struct err *submodule_set_by(struct db *, int64_t project_id,
    int64_t user_id);
/* The number of a repository in the list; ERR_NOTFOUND. */
MUSTCHECK const struct err *submodule_find(struct db *, struct arena *,
    const struct submodule *key, struct submodule *out);
/* Stores a number that the user has found, unless another one has set the list
 * meanwhile. */
MUSTCHECK const struct err *submodule_confirm(struct db *,
    const struct submodule *, int64_t user_id);

#endif
