/* SPDX-License-Identifier: ISC */
/* Programs that slipway runs: git, and the command that prints a token. */
#ifndef SLIPWAY_CLI_CHILD_H
#define SLIPWAY_CLI_CHILD_H

#include "core/buf.h"

/* Runs a program, found in PATH, and appends its standard output.  Its standard
 * error is the caller's, or closed with `quiet`.  `status` is its exit status;
 * 127 if it cannot be run, 128 and more if a signal ended it. */
MUSTCHECK const struct err *child_output(const char *const argv[], bool quiet,
    struct buf *out, int *status);

/* Starts a program that outlives the caller's interest, with no output. */
MUSTCHECK const struct err *child_start(const char *const argv[], int *status);

#endif
