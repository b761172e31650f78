/* SPDX-License-Identifier: ISC */
/*
 * A project's repository on the Git server.  Its number is stored, because it
 * stays the same when the repository is renamed.
 */
#ifndef SLIPWAY_DISPATCH_REMOTE_H
#define SLIPWAY_DISPATCH_REMOTE_H

#include <stdbool.h>
#include <stdint.h>

#include "access/access.h"

struct remote {
	int64_t project_id;
	const char *repository; /* the address in the project */
};

/* Whether the address lies on the Git server, and that has an API.  `forge` may
 * be NULL. */
bool remote_is_known(const struct forge *, struct arena *,
    const char *repository);
/* Fills in the stored number and path of the repository; if there are none, the
 * path in its address, with a NULL id. */
MUSTCHECK const struct err *remote_recall(const struct forge *, struct db *,
    struct arena *, const struct remote *, struct forge_repo *out);
/* Stores the number and the path. */
MUSTCHECK const struct err *remote_store(const struct forge *, struct db *,
    const struct remote *, const struct forge_repo *);
/* The project gets the repository's new address if it was renamed; the number
 * must be stored. */
MUSTCHECK const struct err *remote_follow(const struct access *, struct arena *,
    const struct remote *, const struct forge_repo *, const char *runner);

#endif
