/* SPDX-License-Identifier: ISC */
/* Commits as a job saw them in its clone. */
#ifndef SLIPWAY_DISPATCH_COMMITS_H
#define SLIPWAY_DISPATCH_COMMITS_H

#include "spool/event.h"

struct dispatch;

/* Stores the commits of a branch, from an event of the result.  Only an outage
 * is an error; malformed commits are logged under `name` and skipped. */
MUSTCHECK const struct err *commits_store(const struct dispatch *,
    int64_t project, const char *name, const struct job_event *);

#endif
