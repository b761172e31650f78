/* SPDX-License-Identifier: ISC */
/* Workspaces: what a runner last reported about the directory of a project. */
#ifndef SLIPWAY_STORE_WORKSPACE_H
#define SLIPWAY_STORE_WORKSPACE_H

#include "db/db.h"

struct workspace_status {
	int64_t project_id;
	const char *status;
	const char *branch;
	const char *commit_hash;
	const char *commit_message;
	bool dirty;
	struct maybe size_bytes;
	const char *runner;
	struct when checked_at;
};

extern const struct shape workspace_shape;

/* Inserts or replaces the row of the project. */
MUSTCHECK const struct err *workspace_save(struct db *,
    const struct workspace_status *);
/* ERR_NOTFOUND if no runner has reported. */
MUSTCHECK const struct err *workspace_by_project(struct db *, struct arena *,
    int64_t project_id, struct workspace_status *out);

#endif
