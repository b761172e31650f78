/* SPDX-License-Identifier: ISC */
/* A pattern (the first line), then a text, each before an unreadable page: a
 * faulty pattern matches nothing, and a pattern in a group matches the same. */
#include "core/ere.h"

#include <sys/mman.h>

#include <stdio.h>
#include <string.h>

#include "fuzz.h"

#define PAGE ((size_t)65536) /* a multiple of any page's size */

static char group[ERE_BYTES_MAX + 3];

/* An unreadable page, and a readable one before it. */
static char *
guard_open(void)
{
	char *map = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	MUST(map != MAP_FAILED);
	MUST(mprotect(map + PAGE, PAGE, PROT_NONE) == 0);
	return map + PAGE;
}

static const char *
guard_put(char *guard, const uint8_t *data, size_t len)
{
	char *to = guard - len - 1;

	(void)memcpy(to, data, len);
	to[len] = '\0';
	return to;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static char *guards[2];
	const char *pattern, *text, *fault;
	const uint8_t *end;
	size_t n;
	bool matched;

	if (len == 0 || len >= PAGE)
		return 0;
	if (guards[0] == NULL) {
		guards[0] = guard_open();
		guards[1] = guard_open();
	}
	end = memchr(data, '\n', len);
	n = end == NULL ? len : (size_t)(end - data);
	pattern = guard_put(guards[0], data, n);
	text = guard_put(guards[1], data + n + (end != NULL),
	    len - n - (end != NULL));
	fault = ere_fault(pattern);
	MUST(fault == NULL || fault[0] != '\0');
	matched = ere_matches(pattern, text);
	if (fault != NULL) {
		MUST(!matched);
		return 0;
	}
	(void)snprintf(group, sizeof(group), "(%s)", pattern);
	if (ere_fault(group) == NULL)
		MUST(ere_matches(group, text) == matched);
	return 0;
}
