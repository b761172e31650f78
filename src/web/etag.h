/* SPDX-License-Identifier: ISC */
/*
 * Entity tags (RFC 9110, section 8.8.3): VERSION-HASH, always strong.
 *
 * The hash covers the body, so that a read detects every change of the
 * response. A write is guarded by the version alone, because members such as
 * workspaceStatus change by themselves. A checksum in the tag binds version and
 * hash to the resource: a tag that was never issued for it guards nothing.
 */
#ifndef SLIPWAY_WEB_ETAG_H
#define SLIPWAY_WEB_ETAG_H

#include <stdbool.h>

#include "core/arena.h"
#include "core/buf.h"

/* The version that a tag identifies. */
struct etag_key {
	const char *kind; /* kind of resource */
	int64_t id;
	int64_t version; /* 0 = unversioned; the tag is the hash alone */
};

/* Returns the tag, without quotes, in the arena. */
const char *etag_make(struct arena *, const struct etag_key *,
    const struct buf *body);
/* Whether If-None-Match matches the tag. "*" matches any; weak tags match. */
bool etag_listed(const char *header, const char *etag);
/* For If-Match on a read: ERR_PRECONDITION unless it matches the tag, which is
 * NULL if the resource has none. "*" matches any; weak tags do not match.
 * ERR_BAD_REQUEST if the list is malformed. */
MUSTCHECK const struct err *etag_require(const char *header, const char *etag);
/* For If-Match on a change: the same, for a tag that was issued for this
 * version of the resource. */
MUSTCHECK const struct err *etag_guard(const char *header,
    const struct etag_key *);
/* For If-None-Match on a change: ERR_PRECONDITION if it matches the version.
 * "*" matches any; weak tags match. */
MUSTCHECK const struct err *etag_exclude(const char *header,
    const struct etag_key *);

#endif
