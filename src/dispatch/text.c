/* SPDX-License-Identifier: ISC */
#include "dispatch/text.h"

#include <string.h>

#include "core/str.h"
#include "core/utf8.h"

const char *
text_clean(struct arena *a, const char *s, size_t max)
{
	size_t len = strlen(s), at = 0, to = 0, n, chars;
	char *out = arena_alloc(a, len + 1, 1);

	for (chars = 0; at < len && chars < max; chars++) {
		for (n = 1; n <= 4 && n <= len - at; n++)
			if (utf8_valid(s + at, n))
				break;
		if (n <= 4 && n <= len - at) {
			(void)memcpy(out + to, s + at, n);
			to += n;
			at += n;
		} else {
			out[to++] = '?';
			at++;
		}
	}
	out[to] = '\0';
	return out;
}

const char *
text_plain(struct arena *a, const char *s, size_t max, const char *kept)
{
	char *out = arena_strdup(a, text_clean(a, s, max)), *p;

	for (p = out; *p != '\0'; p++)
		if (((unsigned char)*p < ' ' || *p == 0x7f) &&
		    strchr(kept, *p) == NULL)
			*p = ' ';
	return out;
}
