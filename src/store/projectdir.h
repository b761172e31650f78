/* SPDX-License-Identifier: ISC */
/*
 * Directories of projects. Those of live projects never overlap: they are
 * neither equal nor contain each other. Those of deleted projects may overlap
 * with any.
 */
#ifndef SLIPWAY_STORE_PROJECTDIR_H
#define SLIPWAY_STORE_PROJECTDIR_H

#include "db/db.h"

struct projectdir {
	int64_t id;
	const char *project_dir;
	int64_t valid;
	int64_t deleted_for; /* seconds; 0 = it exists */
};

/* ERR_NOTFOUND if the project never existed. */
MUSTCHECK const struct err *projectdir_find(struct db *, struct arena *,
    int64_t id, struct projectdir *out);
/* Lists the other projects whose directories overlap with that of `id`. */
MUSTCHECK const struct err *projectdir_around(struct db *, struct arena *,
    int64_t id, struct list *out);
/* The same for deleted projects alone: its cost does not grow with the number
 * of projects that exist. */
MUSTCHECK const struct err *projectdir_deleted_around(struct db *,
    struct arena *, int64_t id, struct list *out);
/* Chooses the directory of a new project: its name as a slug, with a number if
 * another live project has that. */
MUSTCHECK const struct err *projectdir_choose(struct db *, struct arena *,
    const char *name, const char **out);

#endif
