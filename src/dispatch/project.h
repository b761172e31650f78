/* SPDX-License-Identifier: ISC */
/*
 * Files of projects in the spool, SPOOL/objects.<project>: the state that the
 * last job reports to the next one, and which projects have a directory on this
 * host.
 */
#ifndef SLIPWAY_DISPATCH_PROJECT_H
#define SLIPWAY_DISPATCH_PROJECT_H

#include "dispatch/spool.h"

/* The last job's report of git's objects in its workspace; NULL = there is
 * none, so the next job clones again. */
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
