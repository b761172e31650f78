/* SPDX-License-Identifier: ISC */
/* What may stand for a repository. */
#ifndef SLIPWAY_DEPLOY_REPOSITORY_H
#define SLIPWAY_DEPLOY_REPOSITORY_H

#include "core/settings.h"

/* NULL if the address is one that this service may read from, else what to
 * do; in the arena. */
const char *repository_fault(struct arena *, const struct settings_gitserver *,
    const char *address);
/* Whether the address is of this "owner/name", on whatever host; upper and
 * lower case are the same, and ".git" may follow. */
bool repository_ends(const char *address, const char *path);

#endif
