/* SPDX-License-Identifier: ISC */
/* File trees created by someone else: nothing in them is followed. */
#ifndef SLIPWAY_CORE_TREE_H
#define SLIPWAY_CORE_TREE_H

#include <stdbool.h>

#include "core/err.h"

/* Whether the path leads below the directory that it is relative to: it has no
 * component that is empty, "." or "..". */
bool tree_is_below(const char *path);
/* Opens a directory by such a path: a descriptor for fchdir(2) and as a parent.
 * Follows no symbolic link, and does not block whatever is in the way. The
 * error names what that is, and is public. */
MUSTCHECK const struct err *tree_find(int dirfd, const char *path, int *out);

/* Removes everything in the directory, at any depth; the directory stays.
 * Symbolic links are removed, not followed; a mount inside is an error. After an
 * error, only what could not be removed is left, and directories that lead
 * there, which have moved up to the top. */
MUSTCHECK const struct err *tree_empty(int dirfd);
/* The same, but keeps the entry of that name. */
MUSTCHECK const struct err *tree_empty_but(int dirfd, const char *keep);
/* Removes the entry `name` of the directory and everything below it; succeeds
 * if it does not exist. */
MUSTCHECK const struct err *tree_remove(int dirfd, const char *name);

#endif
