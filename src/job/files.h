/* SPDX-License-Identifier: ISC */
/* Brings the files of a workspace to a commit. */
#ifndef SLIPWAY_JOB_FILES_H
#define SLIPWAY_JOB_FILES_H

#include "job/git.h"

/* The state of the files in a workspace. */
enum files_before {
	FILES_COMMITTED, /* those of a commit, with its index, and no others */
	FILES_UNKNOWN,
	FILES_FOREIGN, /* nothing in it belongs to this clone */
};
/* Brings the files to a commit, and the submodules if they are wanted. */
MUSTCHECK const struct err *files_checkout(struct git *g, const char *hash,
    enum files_before before);
/* The last part of that: writes the files that differ from a commit. */
MUSTCHECK const struct err *files_write(struct git *g, const char *hash);

#endif
