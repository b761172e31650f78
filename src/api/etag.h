/* SPDX-License-Identifier: ISC */
/*
 * Entity tags (RFC 9110, section 8.8.3): VERSION-HASH, always strong.
 *
 * The hash covers the body, so that a read shows each change of what it
 * returns.  A write is guarded by the version alone, because members such as
 * workspaceStatus change by themselves.  A checksum in the tag binds version
 * and hash to the resource: a tag that was never issued for it guards nothing.
 */
#ifndef SLIPWAY_API_ETAG_H
#define SLIPWAY_API_ETAG_H

#include <stdbool.h>

#include "core/arena.h"
#include "core/buf.h"

/* What a tag stands for. */
struct etag_key {
	const char *kind; /* of resource */
	int64_t id;
	int64_t version; /* 0 = none; then the hash is the whole tag */
};

/* Without the quotes, in the arena. */
const char *etag_make(struct arena *, const struct etag_key *,
    const struct buf *body);
/* Whether an If-None-Match names the tag ("*" names any; weak tags count). */
bool etag_listed(const char *header, const char *etag);
/* Of an If-Match beside a read: ERR_PRECONDITION unless it names the tag, which
 * is NULL where the resource has none ("*" names any; weak tags do not count).
 * ERR_BAD_REQUEST if it is no list of tags. */
MUSTCHECK const struct err *etag_require(const char *header, const char *etag);
/* Of an If-Match beside a change: the same for a tag issued for this version of
 * the resource. */
MUSTCHECK const struct err *etag_guard(const char *header,
    const struct etag_key *);
/* Of an If-None-Match beside a change: ERR_PRECONDITION if it names the version
 * ("*" names any; weak tags count). */
MUSTCHECK const struct err *etag_exclude(const char *header,
    const struct etag_key *);

#endif
