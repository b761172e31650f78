/* SPDX-License-Identifier: ISC */
/* What may stand for a repository and for a branch. */
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
/* NULL if git takes it as a branch's name (git-check-ref-format(1)), else what
 * is wrong. */
const char *branch_fault(const char *name);

#endif
