/* SPDX-License-Identifier: ISC */
/* Whole files. */
#ifndef SLIPWAY_CORE_FILE_H
#define SLIPWAY_CORE_FILE_H

#include "core/buf.h"

/* Appends the rest of what a descriptor reads.  ERR_INTERNAL with errno,
 * ERR_TOO_LARGE past the buffer's maximum. */
MUSTCHECK const struct err *file_rest(int fd, struct buf *out);
/* Appends the content of a file; ERR_NOTFOUND if it does not exist. */
MUSTCHECK const struct err *file_load(const char *path, struct buf *out);
/* Whether the file system of a directory has room for others than root: 0, or
 * an errno. */
int file_room(int dir);
/* Writes all data at the descriptor's current offset. */
MUSTCHECK const struct err *file_store(int fd, const void *data, size_t len);

#endif
