/* SPDX-License-Identifier: ISC */
#include "live/gaps.h"

#include <string.h>

/* At most, between two ids. More transactions are not open at a time, even on a
 * cluster, where each server takes every n-th id only. */
#define SPAN 256
#define KEEP_MS 60000 /* no transaction lasts longer */

static void
gap_add(struct gaps *g, int64_t id, int64_t now)
{
	if (g->n == GAPS_MAX) {
		(void)memmove(&g->all[0], &g->all[1],
		    (GAPS_MAX - 1) * sizeof(g->all[0]));
		g->n--;
	}
	g->all[g->n++] = (struct gap){ .id = id, .until = now + KEEP_MS };
}

void
gaps_add(struct gaps *g, int64_t after, int64_t before, int64_t now)
{
	int64_t id = before - after > SPAN ? before - SPAN : after + 1;

	for (; id < before; id++)
		gap_add(g, id, now);
}

void
gaps_expire(struct gaps *g, int64_t now)
{
	size_t n = 0;

	while (n < g->n && g->all[n].until <= now)
		n++;
	g->n -= n;
	(void)memmove(&g->all[0], &g->all[n], g->n * sizeof(g->all[0]));
}

void
gaps_close(struct gaps *g, int64_t id)
{
	size_t i;

	for (i = 0; i < g->n && g->all[i].id != id; i++)
		;
	if (i == g->n)
		return;
	g->n--;
	(void)memmove(&g->all[i], &g->all[i + 1],
	    (g->n - i) * sizeof(g->all[0]));
}
