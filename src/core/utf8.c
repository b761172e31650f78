/* SPDX-License-Identifier: ISC */
#include "core/utf8.h"

#include <string.h>

size_t
utf8_len(const char *text, size_t left)
{
	static const struct {
		unsigned char first, last; /* of the lead byte */
		unsigned char low, high;   /* of the byte after it */
		size_t len;
	} forms[] = {
		{ 0x00, 0x7f, 0x00, 0x00, 1 },
		{ 0xc2, 0xdf, 0x80, 0xbf, 2 },
		{ 0xe0, 0xe0, 0xa0, 0xbf, 3 },
		{ 0xe1, 0xec, 0x80, 0xbf, 3 },
		{ 0xed, 0xed, 0x80, 0x9f, 3 },
		{ 0xee, 0xef, 0x80, 0xbf, 3 },
		{ 0xf0, 0xf0, 0x90, 0xbf, 4 },
		{ 0xf1, 0xf3, 0x80, 0xbf, 4 },
		{ 0xf4, 0xf4, 0x80, 0x8f, 4 },
	};
	const unsigned char *s = (const unsigned char *)text;
	size_t i, k;

	for (i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		if (*s < forms[i].first || *s > forms[i].last)
			continue;
		if (left < forms[i].len)
			return 0;
		if (forms[i].len > 1 &&
		    (s[1] < forms[i].low || s[1] > forms[i].high))
			return 0;
		for (k = 2; k < forms[i].len; k++)
			if ((s[k] & 0xc0) != 0x80)
				return 0;
		return forms[i].len;
	}
	return 0;
}

bool
utf8_valid(const char *s, size_t len)
{
	size_t at = 0, step;

	while (at < len) {
		if ((step = utf8_len(s + at, len - at)) == 0)
			return false;
		at += step;
	}
	return true;
}

void
utf8_drop_partial(char *s)
{
	size_t end = strlen(s), at = end;

	while (at > 0 && end - at < 4)
		if (((unsigned char)s[--at] & 0xc0) != 0x80)
			break;
	if (utf8_len(s + at, end - at) == 0)
		s[at] = '\0';
}
