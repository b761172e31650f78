/* SPDX-License-Identifier: ISC */
/*
 * What the spool has of projects, in SPOOL/objects.<project>: what the next job
 * needs to know of the last one, and which projects have a directory on this
 * host.
 */
#ifndef SLIPWAY_DISPATCH_PROJECT_H
#define SLIPWAY_DISPATCH_PROJECT_H

#include "dispatch/spool.h"

/* What the last job reported of git's objects in its workspace; NULL = nothing,
 * so the next one clones again. */
const char *project_objects(const struct spool *, struct arena *,
    int64_t project);
void project_objects_save(const struct spool *, int64_t project,
    const char *text);
/* The project has a directory on this host from now on, or no longer. */
void project_mark(const struct spool *, int64_t project);
void project_unmark(const struct spool *, int64_t project);
bool project_is_marked(const struct spool *, int64_t project);
/* Calls `each` for all that are marked, until it returns false. */
typedef bool project_marked(void *context, int64_t project);
void project_each(const struct spool *, project_marked *each, void *context);

#endif
