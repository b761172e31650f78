/* SPDX-License-Identifier: ISC */
/* Checks the URL of a repository. */
#ifndef SLIPWAY_DEPLOY_REPOSITORY_H
#define SLIPWAY_DEPLOY_REPOSITORY_H

#include "core/settings.h"

/* NULL if this service may read from the URL, else what is wrong and what to
 * do, in the arena. */
const char *repository_fault(struct arena *, const struct settings_gitserver *,
    const char *address);
/* Whether the URL, on any host, ends in this "owner/name", regardless of case
 * and of a ".git" suffix. */
bool repository_ends(const char *address, const char *path);

#endif
