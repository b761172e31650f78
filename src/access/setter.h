/* SPDX-License-Identifier: ISC */
/*
 * What the credentials of others may read for a project: those of the service,
 * and those of users whose deployments start by themselves.
 *
 * Who may change a project may name any repository of the Git server.  So that
 * nobody reads through a project what the Git server denies to that user, these
 * credentials read a repository only after the user who set it could read it.
 * The repository is identified by its number, so that this is asked once.
 *
 * Users without an account at the Git server have no rights there that could be
 * compared; the service's credentials read what they set.
 */
#ifndef SLIPWAY_ACCESS_SETTER_H
#define SLIPWAY_ACCESS_SETTER_H

#include "access/access.h"
#include "core/buf.h"

/* Whether the user may set that repository: not without an account at the Git
 * server, if others have one, because the rights of the user there are not
 * known. It does not concern those who may create projects. */
MUSTCHECK const struct err *setter_may(const struct access *, struct arena *,
    int64_t user_id, const char *repository, bool *out);
/* The same for the project's list of repositories for submodules. */
MUSTCHECK const struct err *setter_may_list(const struct access *,
    struct arena *, int64_t user_id, bool *out);
/* NULL: the credentials may be used. ERR_FORBIDDEN, with a detail: the user who
 * set the repository cannot read it. Others: unknown at the moment. */
MUSTCHECK const struct err *setter_check(const struct access *, struct arena *,
    int64_t project_id, const char *repository);
/* Records that the user who set the repository has found it with the user's own
 * token. */
MUSTCHECK const struct err *setter_confirm(const struct access *,
    int64_t project_id, const char *repository, const struct forge_repo *,
    int64_t user_id);

/* A project's list of repositories for submodules, and the token with which a
 * deployment reads. */
struct setter_list {
	int64_t project_id;
	struct list paths;   /* struct submodule_path */
	struct maybe set_by; /* who set the list */
	const char *token;
};

/*
 * Whoever can push to a repository names its submodules, so the token of a
 * deployment must not read all that it can: it reads those of the project's
 * list, each of which the user who set the list could read.  They are
 * identified by their numbers, as the project's repository is.
 *
 * Writes the addresses of these, separated by blanks, and why others of the list
 * are not among them: "PATH: reason; PATH: reason".  An error means that it is
 * unknown at the moment.
 */
MUSTCHECK const struct err *setter_lend(const struct access *, struct arena *,
    const struct setter_list *, struct buf *lent, struct buf *refused);

#endif
