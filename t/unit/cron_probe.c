/* SPDX-License-Identifier: ISC */
/* Times of schedules, for tests: reads lines "CRON|ZONE|FROM|N" and prints the N
 * times after FROM, in seconds since 1970, or "fault TEXT". */
#include <stdio.h>
#include <string.h>

#include "core/cron.h"
#include "core/num.h"
#include "core/zone.h"

static void
answer(const char *text, const char *zone, int64_t from, int64_t n)
{
	const char *fault;
	struct cron cron;

	if ((fault = cron_parse(text, &cron)) == NULL && !zone_is_known(zone))
		fault = "unknown time zone";
	if (fault != NULL) {
		(void)printf("fault %s\n", fault);
		return;
	}
	for (; n > 0; n--) {
		from = cron_next(&cron, zone, from);
		(void)printf("%lld%c", (long long)from, n > 1 ? ' ' : '\n');
	}
}

int
main(void)
{
	char line[1024], *part[4], *rest;
	int64_t from, n;
	size_t i;

	while (fgets(line, sizeof(line), stdin) != NULL) {
		line[strcspn(line, "\n")] = '\0';
		for (i = 0, rest = line; i < 4; i++)
			part[i] = rest != NULL ? strsep(&rest, "|") : NULL;
		if (part[3] == NULL ||
		    !num_parse(part[2], 0, NUM_SAFE, &from) ||
		    !num_parse(part[3], 1, 10000000, &n))
			(void)printf("usage: CRON|ZONE|FROM|N\n");
		else
			answer(part[0], part[1], from, n);
		(void)fflush(stdout);
	}
	return 0;
}
