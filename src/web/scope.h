/* SPDX-License-Identifier: ISC */
/*
 * The caller's role for a request: the higher one of the user's own role and of
 * the role as a member of the project that the request names, but at most that
 * of the API token.
 *
 * A request names a project by the first id in its path, by a query parameter or
 * by a member of its body; their names say what the id belongs to. For a guest,
 * the id of another project is replaced by one that no object has, so that the
 * response is that for an unknown id.
 */
#ifndef SLIPWAY_WEB_SCOPE_H
#define SLIPWAY_WEB_SCOPE_H

#include "web/req.h"

/* Whether requests of the route may name a project. */
bool scope_is_of_project(const struct route *);

/* Each of these checks the role as soon as the request shows which one applies:
 * after authentication, with the query, with the body, and at the end without a
 * project. Sets rq->role and rq->member. ERR_FORBIDDEN. */
MUSTCHECK const struct err *scope_path(struct req *);
MUSTCHECK const struct err *scope_query(struct req *);
MUSTCHECK const struct err *scope_body(struct req *);
MUSTCHECK const struct err *scope_rest(struct req *);

/* The highest role that the caller has in any project. */
MUSTCHECK const struct err *scope_reach(struct req *, enum role *out);
/* The caller's role in a project of a list, from the role as a member there
 * (NULL = none). */
const char *scope_role(const struct req *, const char *member);

#endif
