/* SPDX-License-Identifier: ISC */
/* File trees created by someone else: nothing in them is followed. */
#ifndef SLIPWAY_CORE_TREE_H
#define SLIPWAY_CORE_TREE_H

#include <stdint.h>

#include "core/err.h"

/* Removes everything in the directory, at any depth; the directory stays.
 * Symbolic links are removed, not followed; a mount inside is an error. */
MUSTCHECK const struct err *tree_empty(int dirfd);
/* The same, but keeps the entry of that name. */
MUSTCHECK const struct err *tree_empty_but(int dirfd, const char *keep);
/* Removes the entry `name` of the directory and everything below it; succeeds
 * if it does not exist. */
MUSTCHECK const struct err *tree_remove(int dirfd, const char *name);
/* Counts the bytes and entries of files below the current directory, on its
 * file system.  Stops at the deadline (time_mono_ms), with what was counted
 * until then. */
void tree_size(int64_t deadline, int64_t *bytes, int64_t *entries);
/* When anything at or below the path last changed: the latest status change
 * (st_ctim, inode(7)), which owners cannot set, in nanoseconds since 1970; -1
 * if that cannot be determined. */
int64_t tree_changed(const char *path);

#endif
