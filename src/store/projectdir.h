/* SPDX-License-Identifier: ISC */
/*
 * Whose directories lie where.  Those of projects that exist never overlap: one
 * neither equals nor contains another.  Those of deleted projects may overlap
 * with any.
 */
#ifndef SLIPWAY_STORE_PROJECTDIR_H
#define SLIPWAY_STORE_PROJECTDIR_H

#include "db/db.h"

struct projectdir {
	int64_t id;
	const char *project_dir;
	int64_t valid;
	int64_t due; /* it was deleted a day ago or more */
};

/* ERR_NOTFOUND if there never was such a project. */
MUSTCHECK const struct err *projectdir_find(struct db *, struct arena *,
    int64_t id, struct projectdir *out);
/* The other projects whose directories overlap with that of `id`. */
MUSTCHECK const struct err *projectdir_around(struct db *, struct arena *,
    int64_t id, struct list *out);

#endif
