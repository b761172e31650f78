/* SPDX-License-Identifier: ISC */
#include "dispatch/labels.h"

#include <string.h>

#include "core/buf.h"

#define LABELS_MAX ((size_t)1 << 16)

/* The configuration accepts only labels without characters that JSON escapes. */
const char *
labels_json(struct arena *a, const char *labels)
{
	const char *text;
	struct buf b;
	size_t len;

	buf_init(&b, LABELS_MAX);
	for (; labels != NULL && *labels != '\0'; labels += len) {
		labels += strspn(labels, ", \t");
		if ((len = strcspn(labels, ", \t")) > 0)
			buf_printf(&b, "%s\"%.*s\"", b.len == 0 ? "[" : ",",
			    (int)len, labels);
	}
	buf_puts(&b, b.len == 0 ? "[]" : "]");
	text = arena_strndup(a, b.data, b.len);
	buf_release(&b);
	return text;
}
