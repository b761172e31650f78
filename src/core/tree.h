/* SPDX-License-Identifier: ISC */
/* Trees of files that somebody else made: nothing in them is followed. */
#ifndef SLIPWAY_CORE_TREE_H
#define SLIPWAY_CORE_TREE_H

#include <stdint.h>

#include "core/err.h"

/* Removes all that is in the directory, however deep; the directory stays.
 * Symbolic links are removed, not followed; a mount inside is an error. */
MUSTCHECK const struct err *tree_empty(int dirfd);
/* The same, but for the entry of that name. */
MUSTCHECK const struct err *tree_empty_but(int dirfd, const char *keep);
/* Removes the entry `name` of the directory and all below it; no error if
 * there is none. */
MUSTCHECK const struct err *tree_remove(int dirfd, const char *name);
/* Bytes of files below the current directory, on its file system, as far as
 * they are counted by then (time_mono_ms); how many entries it has. */
void tree_size(int64_t deadline, int64_t *bytes, int64_t *entries);
/* When something at or below the path was last changed: the latest change of
 * status (st_ctim, inode(7)), which no owner can set, in nanoseconds since
 * 1970; -1 if that cannot be seen. */
int64_t tree_changed(const char *path);

#endif
