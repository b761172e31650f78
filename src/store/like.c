/* SPDX-License-Identifier: ISC */
#include "store/like.h"

#include <string.h>

const char *
like_substring(struct arena *a, const char *text)
{
	char *out, *to;

	if (text == NULL)
		return NULL;
	to = out = arena_alloc(a, 2 * strlen(text) + 3, 1);
	*to++ = '%';
	for (; *text != '\0'; text++) {
		if (strchr("!%_", *text) != NULL)
			*to++ = '!';
		*to++ = *text;
	}
	*to++ = '%';
	*to = '\0';
	return out;
}
