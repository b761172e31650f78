/* SPDX-License-Identifier: ISC */
#include "spool/spool.h"

#include <stdarg.h>
#include <string.h>

#include "core/num.h"

#define NAME_MAX_LEN 32
#define LENGTH_MAX_LEN 7 /* digits of SPOOL_RECORD */
#define HEAD_MAX (NAME_MAX_LEN + 1 + LENGTH_MAX_LEN + 1)

void
record_write(struct buf *b, const char *name, const char *value, size_t len)
{
	if (len > SPOOL_RECORD || strlen(name) > NAME_MAX_LEN) {
		b->overflow = true;
		return;
	}
	buf_printf(b, "%s %zu\n", name, len);
	buf_add(b, value, len);
	buf_putc(b, '\n');
}

void
record_printf(struct buf *b, const char *name, const char *fmt, ...)
{
	struct buf value;
	va_list ap;

	buf_init(&value, SPOOL_RECORD);
	va_start(ap, fmt);
	buf_vprintf(&value, fmt, ap);
	va_end(ap);
	if (value.overflow)
		b->overflow = true;
	else
		record_write(b, name, value.data, value.len);
	buf_release(&value);
}

/* Splits "NAME LENGTH" in place; false if it is malformed. */
static bool
head_split(char *head, int64_t *length)
{
	char *space = strchr(head, ' ');

	if (space == NULL || space == head ||
	    strspn(head, "abcdefghijklmnopqrstuvwxyz-") !=
		(size_t)(space - head))
		return false;
	*space = '\0';
	return strlen(head) <= NAME_MAX_LEN &&
	    num_parse(space + 1, 0, (int64_t)SPOOL_RECORD, length);
}

const struct err *
record_read(struct arena *a, const char *data, size_t len, size_t *at,
    struct record *out, bool *found)
{
	const char *start, *newline;
	size_t left, headlen;
	int64_t length = 0;
	char *head;

	*found = false;
	(void)memset(out, 0, sizeof(*out));
	if (*at >= len)
		return NULL;
	start = data + *at;
	left = len - *at;
	newline = memchr(start, '\n', left < HEAD_MAX ? left : HEAD_MAX);
	if (newline == NULL) {
		if (left < HEAD_MAX)
			return NULL;
		return err_new(ERR_INTERNAL, "record at %zu: missing head",
		    *at);
	}
	headlen = (size_t)(newline - start);
	head = arena_strndup(a, start, headlen);
	if (strlen(head) != headlen || !head_split(head, &length))
		return err_new(ERR_INTERNAL, "record at %zu: malformed head",
		    *at);
	left -= headlen + 1;
	if (left < (size_t)length + 1)
		return NULL;
	if (newline[1 + length] != '\n' ||
	    memchr(newline + 1, '\0', (size_t)length) != NULL)
		return err_new(ERR_INTERNAL, "record at %zu: malformed value",
		    *at);
	out->name = head;
	out->value = arena_strndup(a, newline + 1, (size_t)length);
	out->len = (size_t)length;
	*at += headlen + 1 + (size_t)length + 1;
	*found = true;
	return NULL;
}
