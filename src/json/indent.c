/* SPDX-License-Identifier: ISC */
#include <string.h>

#include "json/json.h"

static void
line_begin(struct buf *out, size_t depth)
{
	buf_putc(out, '\n');
	while (depth-- > 0)
		buf_puts(out, "  ");
}

/* Whether an array or object is empty; `p` is past its bracket. */
static bool
is_empty(const char *p, const char *end)
{
	while (p < end && strchr(" \t\r\n", *p) != NULL)
		p++;
	return p < end && (*p == '}' || *p == ']');
}

/* Copies a string; returns its last quote. */
static const char *
string_copy(struct buf *out, const char *p)
{
	const char *start = p;

	for (p++; *p != '"'; p++)
		p += *p == '\\';
	buf_add(out, start, (size_t)(p + 1 - start));
	return p;
}

void
json_indent(struct buf *out, const char *text, size_t len)
{
	const char *p, *end = text + len;
	size_t depth = 0;

	for (p = text; p < end; p++) {
		if (*p == '"') {
			p = string_copy(out, p);
		} else if ((*p == '{' || *p == '[') && is_empty(p + 1, end)) {
			buf_putc(out, *p);
			p = strpbrk(p, "}]");
			buf_putc(out, *p);
		} else if (*p == '{' || *p == '[') {
			buf_putc(out, *p);
			line_begin(out, ++depth);
		} else if (*p == '}' || *p == ']') {
			line_begin(out, --depth);
			buf_putc(out, *p);
		} else if (*p == ',') {
			buf_putc(out, *p);
			line_begin(out, depth);
		} else if (*p == ':') {
			buf_puts(out, ": ");
		} else if (strchr(" \t\r\n", *p) == NULL) {
			buf_putc(out, *p);
		}
	}
}
