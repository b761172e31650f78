/* SPDX-License-Identifier: ISC */
/*
 * Follows repositories that were renamed or transferred.  Their numbers at the
 * Git server stay, and the server names the present path.
 */
#ifndef SLIPWAY_ACCESS_MOVED_H
#define SLIPWAY_ACCESS_MOVED_H

#include "access/access.h"
#include "store/gitrepo.h"

/* The address with the path; `repository` itself if it has that path, or if the
 * path cannot be part of an address. */
const char *moved_address(const struct forge *, struct arena *,
    const char *repository, const char *path);
/* If the number that is stored for the project has another path now, gives the
 * project the address with that path.  `repo` is what the server showed to a
 * trusted token; nothing else may change a project. */
MUSTCHECK const struct err *moved_follow(const struct access *, struct arena *,
    const struct git_repo *, const struct git_follower *);

#endif
