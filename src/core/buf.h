/* SPDX-License-Identifier: ISC */
/*
 * A growing byte buffer with a maximum.
 *
 * Always NUL-terminated after the first append.  Appending past the maximum
 * fails once and for good: `overflow` is set, later appends do nothing, and
 * the owner checks it where the result is used (buf_check).
 */
#ifndef SLIPWAY_CORE_BUF_H
#define SLIPWAY_CORE_BUF_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"

struct buf {
	char *data; /* owned; NULL while empty */
	size_t len; /* without the NUL */
	size_t cap;
	size_t max;
	bool overflow;
};

/* Takes no memory yet; `max` in bytes. */
void buf_init(struct buf *, size_t max);
/* Forgets the content, keeps the memory. */
void buf_clear(struct buf *);
/* Frees; the buffer may be used again as after buf_init. */
void buf_release(struct buf *);
/* The same, for a secret: overwrites the memory first. */
void buf_wipe(struct buf *);

void buf_add(struct buf *, const void *data, size_t len);
void buf_puts(struct buf *, const char *s);
void buf_putc(struct buf *, char c);
void buf_printf(struct buf *, const char *fmt, ...) PRINTFLIKE(2, 3);
void buf_vprintf(struct buf *, const char *fmt, va_list) PRINTFLIKE(2, 0);
/* Removes the first n bytes. */
void buf_drop(struct buf *, size_t n);
/* ERR_TOO_LARGE if something did not fit. */
MUSTCHECK const struct err *buf_check(const struct buf *);

#endif
