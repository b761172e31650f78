/* SPDX-License-Identifier: ISC */
/* File trees created by someone else: nothing in them is followed. */
#ifndef SLIPWAY_CORE_TREE_H
#define SLIPWAY_CORE_TREE_H

#include "core/err.h"

/* Removes everything in the directory, at any depth; the directory stays.
 * Symbolic links are removed, not followed; a mount inside is an error. */
MUSTCHECK const struct err *tree_empty(int dirfd);
/* The same, but keeps the entry of that name. */
MUSTCHECK const struct err *tree_empty_but(int dirfd, const char *keep);
/* Removes the entry `name` of the directory and everything below it; succeeds
 * if it does not exist. */
MUSTCHECK const struct err *tree_remove(int dirfd, const char *name);

#endif
