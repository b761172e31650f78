/* SPDX-License-Identifier: ISC */
#include <stdio.h>
#include <string.h>

#include "core/str.h"
#include "http/inner.h"

#define FAILED_MAX 5
#define REST_MS 10000

/* The index of that origin, -1 if it is not recorded. */
static int
find(const struct breaker *b, const char *origin)
{
	int i;

	for (i = 0; i < BREAKER_SERVERS; i++)
		if (strcmp(b->server[i].origin, origin) == 0)
			return i;
	return -1;
}

int64_t
breaker_wait(struct breaker *b, const char *origin)
{
	int i = find(b, origin);
	int64_t now = time_mono_ms();

	if (i < 0 || b->server[i].failed < FAILED_MAX ||
	    b->server[i].until <= now)
		return 0;
	return b->server[i].until - now;
}

void
breaker_answered(struct breaker *b, const char *origin)
{
	int i = find(b, origin);

	if (i >= 0)
		(void)memset(&b->server[i], 0, sizeof(b->server[i]));
}

void
breaker_failed(struct breaker *b, const char *origin)
{
	int i, at = find(b, origin);

	if (at < 0) {
		if (strlen(origin) >= BREAKER_ORIGIN)
			return;
		for (at = 0, i = 1; i < BREAKER_SERVERS; i++)
			if (b->server[i].asked_at < b->server[at].asked_at)
				at = i;
		(void)memset(&b->server[at], 0, sizeof(b->server[at]));
		(void)snprintf(b->server[at].origin, BREAKER_ORIGIN, "%s",
		    origin);
	}
	b->server[at].asked_at = time_mono_ms();
	b->server[at].until = b->server[at].asked_at + REST_MS;
	if (b->server[at].failed < FAILED_MAX)
		b->server[at].failed++;
}
