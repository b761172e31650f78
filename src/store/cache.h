/* SPDX-License-Identifier: ISC */
/* Caches of projects: which one the jobs of a project use. */
#ifndef SLIPWAY_STORE_CACHE_H
#define SLIPWAY_STORE_CACHE_H

#include "db/db.h"

/* Makes the next job of the project, on any host, begin with an empty cache. */
MUSTCHECK const struct err *cache_empty(struct db *, int64_t project_id);

#endif
