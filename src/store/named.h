/* SPDX-License-Identifier: ISC */
/* Ids by name, for documents that contain names instead of ids. */
#ifndef SLIPWAY_STORE_NAMED_H
#define SLIPWAY_STORE_NAMED_H

#include "db/db.h"

enum named_type {
	NAMED_PROJECT,
	NAMED_USER,
	NAMED_PIPELINE, /* from here on in a project */
	NAMED_ENVIRONMENT,
	NAMED_SCHEDULE,
	NAMED__MAX
};

struct notifier;

/* Finds the object with that name; 0 = it does not exist, or the name is NULL.
 * `project_id` is ignored for projects and users. */
MUSTCHECK const struct err *named_find(struct db *, enum named_type,
    int64_t project_id, const char *name, int64_t *id);
/* The first notifier of the project with the same kind, target and environment,
 * and a greater id. */
MUSTCHECK const struct err *named_notifier(struct db *, const struct notifier *,
    int64_t *id);

#endif
