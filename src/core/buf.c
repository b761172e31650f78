/* SPDX-License-Identifier: ISC */
#include "core/buf.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "core/arena.h"

void
buf_init(struct buf *b, size_t max)
{
	(void)memset(b, 0, sizeof(*b));
	b->max = max;
}

void
buf_clear(struct buf *b)
{
	b->len = 0;
	b->overflow = false;
	if (b->data != NULL)
		b->data[0] = '\0';
}

void
buf_release(struct buf *b)
{
	mem_free(b->data);
	buf_init(b, b->max);
}

void
buf_wipe(struct buf *b)
{
	if (b->data != NULL)
		explicit_bzero(b->data, b->cap);
	buf_release(b);
}

/* Makes room for `more` bytes and a NUL; false if that exceeds the maximum. */
static bool
room(struct buf *b, size_t more)
{
	size_t cap;

	if (b->overflow || more > b->max || b->len > b->max - more) {
		b->overflow = true;
		return false;
	}
	if (b->len + more < b->cap)
		return true;
	cap = b->cap == 0 ? 256 : b->cap;
	while (cap <= b->len + more)
		cap *= 2;
	if (cap > b->max)
		cap = b->max + 1;
	b->data = mem_grow(b->data, cap, 1);
	b->cap = cap;
	return true;
}

void
buf_add(struct buf *b, const void *data, size_t len)
{
	if (!room(b, len))
		return;
	if (len > 0)
		(void)memcpy(b->data + b->len, data, len);
	b->len += len;
	b->data[b->len] = '\0';
}

void
buf_puts(struct buf *b, const char *s)
{
	buf_add(b, s, strlen(s));
}

void
buf_putc(struct buf *b, char c)
{
	if (!room(b, 1))
		return;
	b->data[b->len++] = c;
	b->data[b->len] = '\0';
}

void
buf_number(struct buf *b, int64_t n)
{
	uint64_t left = n < 0 ? 0 - (uint64_t)n : (uint64_t)n;
	char text[20], *at = text + sizeof(text);

	do {
		*--at = (char)('0' + left % 10);
		left /= 10;
	} while (left > 0);
	if (n < 0)
		*--at = '-';
	buf_add(b, at, (size_t)(text + sizeof(text) - at));
}

void
buf_vprintf(struct buf *b, const char *fmt, va_list ap)
{
	size_t left = b->overflow ? 0 : b->cap - b->len;
	va_list again;
	int len;

	va_copy(again, ap);
	len = vsnprintf(left == 0 ? NULL : b->data + b->len, left, fmt, ap);
	assert(len >= 0);
	if ((size_t)len >= left) {
		if (left > 0)
			b->data[b->len] = '\0';
		if (!room(b, (size_t)len))
			goto out;
		(void)vsnprintf(b->data + b->len, (size_t)len + 1, fmt, again);
	}
	b->len += (size_t)len;
out:
	va_end(again);
}

void
buf_printf(struct buf *b, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	buf_vprintf(b, fmt, ap);
	va_end(ap);
}

void
buf_drop(struct buf *b, size_t n)
{
	assert(n <= b->len);
	if (n == 0)
		return;
	b->len -= n;
	(void)memmove(b->data, b->data + n, b->len);
	b->data[b->len] = '\0';
}

const struct err *
buf_check(const struct buf *b)
{
	if (b->overflow)
		return err_new(ERR_TOO_LARGE, "more than %zu bytes", b->max);
	return NULL;
}
