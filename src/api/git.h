/* SPDX-License-Identifier: ISC */
/* Reads a project's repository for other handlers. */
#ifndef SLIPWAY_API_GIT_H
#define SLIPWAY_API_GIT_H

#include "api/req.h"
#include "store/project.h"

struct git_ref {
	const char *branch; /* NULL = the default branch, unless there is a
			     * tag */
	const char *tag;
};

/* Finds the commit of a tag, or the newest of a branch, with the caller's own
 * access to the Git server; in the request's arena. ERR_NOTFOUND if there is no
 * such branch, tag or repository, ERR_UPSTREAM,
 * ERR_UPSTREAM_TIMEOUT or ERR_UNAVAILABLE, with a detail, if it cannot be
 * read, and ERR_RATE if too many requests wait. */
MUSTCHECK const struct err *git_tip(struct req *, int64_t project_id,
    const struct git_ref *, const char **out);

#endif
