/* SPDX-License-Identifier: ISC */
/* Entity tags (RFC 9110, section 8.8.3): VERSION-HASH, always strong. */
#ifndef SLIPWAY_API_ETAG_H
#define SLIPWAY_API_ETAG_H

#include <stdbool.h>

#include "core/arena.h"
#include "core/buf.h"

/* Without the quotes, in the arena. */
const char *etag_make(struct arena *, int64_t version, const struct buf *body);
/* Whether an If-None-Match names the tag ("*" names any; weak tags count). */
bool etag_listed(const char *header, const char *etag);
/* Whether an If-Match names the version ("*" names any; weak tags do not
 * count). ERR_BAD_REQUEST if it is no list of tags. */
MUSTCHECK const struct err *etag_guard(const char *header, int64_t version);
/* Of an If-None-Match beside a change: ERR_PRECONDITION if it names the version
 * ("*" names any; weak tags count). */
MUSTCHECK const struct err *etag_exclude(const char *header, int64_t version);

#endif
