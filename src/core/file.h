/* SPDX-License-Identifier: ISC */
/* Whole files. */
#ifndef SLIPWAY_CORE_FILE_H
#define SLIPWAY_CORE_FILE_H

#include "core/buf.h"

/* Appends what is left to read of a descriptor. ERR_INTERNAL with errno,
 * ERR_TOO_LARGE past the buffer's maximum. */
MUSTCHECK const struct err *file_rest(int fd, struct buf *out);
/* Appends a file's content; ERR_NOTFOUND if there is none of that name. */
MUSTCHECK const struct err *file_load(const char *path, struct buf *out);
/* Writes all of it at the descriptor's place. */
MUSTCHECK const struct err *file_store(int fd, const void *data, size_t len);

#endif
