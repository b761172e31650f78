/* SPDX-License-Identifier: ISC */
/*
 * What a request changes, and its entries in the audit log.
 *
 * Every handler of a route that may write says here, inside its transaction,
 * what it has changed or that it has changed nothing. If one says neither, the
 * transaction and the request fail, so that no route can be forgotten. The
 * route's operation is the action of the entry.
 */
#ifndef SLIPWAY_WEB_AUDITED_H
#define SLIPWAY_WEB_AUDITED_H

#include "store/audit.h"
#include "web/req.h"

/* Adds an entry about an object that the request has created, changed or
 * deleted; `id` and `project_id` 0 = none. */
MUSTCHECK const struct err *audited_change(struct req *, enum audit_object,
    int64_t id, int64_t project_id);
MUSTCHECK const struct err *audited_object(struct req *,
    const struct audit_object_ref *);
/* The next entry names the members of this object, which the request creates,
 * instead of those of the body. */
void audited_made(struct req *, const struct shape *, const void *made);
/* How the request came: the value of via in its entries. */
const char *audited_via(const struct req *);
/* The request changes nothing. */
void audited_nothing(struct req *);
/* Whether the members that a PUT may change are equal; then the request changes
 * nothing. Otherwise the entry names those that differ. */
bool audited_same(struct req *, const struct shape *, const void *old,
    const void *new);

#endif
