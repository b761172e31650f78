/* SPDX-License-Identifier: ISC */
/*
 * A growing byte buffer with a maximum size.
 *
 * It is NUL-terminated after the first append.  An append that would exceed the
 * maximum sets `overflow`, and later appends do nothing.  The owner calls
 * buf_check before using the result.
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

/* Allocates nothing yet; `max` is in bytes. */
void buf_init(struct buf *, size_t max);
/* Empties the buffer, but keeps its memory. */
void buf_clear(struct buf *);
/* Frees the memory; the buffer may be reused as after buf_init. */
void buf_release(struct buf *);
/* The same, for a secret: overwrites the memory first. */
void buf_wipe(struct buf *);

void buf_add(struct buf *, const void *data, size_t len);
void buf_puts(struct buf *, const char *s);
void buf_putc(struct buf *, char c);
/* In decimal digits. */
void buf_number(struct buf *, int64_t n);
void buf_printf(struct buf *, const char *fmt, ...) PRINTFLIKE(2, 3);
void buf_vprintf(struct buf *, const char *fmt, va_list) PRINTFLIKE(2, 0);
/* Removes the first n bytes. */
void buf_drop(struct buf *, size_t n);
/* ERR_TOO_LARGE if an append did not fit. */
MUSTCHECK const struct err *buf_check(const struct buf *);

#endif
