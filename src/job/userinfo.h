/* SPDX-License-Identifier: ISC */
/*
 * Hides users and passwords of URLs in a stream of bytes: git prints the URLs of
 * submodules as the repository has them.  A user that SSH needs (git@) stays.
 */
#ifndef SLIPWAY_JOB_USERINFO_H
#define SLIPWAY_JOB_USERINFO_H

#include <stdbool.h>
#include <stddef.h>

#include "core/buf.h"

#define USERINFO_MAX 1024 /* longer ones stay */

/* All zero at the beginning. */
struct userinfo {
	char recent[6];          /* the last bytes before an authority */
	char held[USERINFO_MAX]; /* of an authority: may be a user */
	size_t len;
	bool inside; /* after "://" */
	bool is_ssh;
};

/* Appends the bytes to `out`, except for those that may begin a user. */
void userinfo_feed(struct userinfo *, const char *data, size_t len,
    struct buf *out);
/* Appends the bytes held back, at the end of the stream. */
void userinfo_finish(struct userinfo *, struct buf *out);

#endif
