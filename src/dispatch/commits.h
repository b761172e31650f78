/* SPDX-License-Identifier: ISC */
/* Commits as a job saw them in its clone. */
#ifndef SLIPWAY_DISPATCH_COMMITS_H
#define SLIPWAY_DISPATCH_COMMITS_H

#include <stdint.h>

#include "core/err.h"

struct dispatch;

/* Stores the commits of a branch, from a record of the result.  Only an outage
 * is an error; a malformed record is logged under `name` and skipped. */
MUSTCHECK const struct err *commits_store(const struct dispatch *,
    int64_t project, const char *name, const char *value);

#endif
