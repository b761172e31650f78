/* SPDX-License-Identifier: ISC */
#include "web/scoreboard.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

#define PATH_LOGGED 160
/* clang-format off */
#define BOUND_MS(ms, seconds) ms,
/* clang-format on */

void
scoreboard_clear(struct scoreboard *b, int place)
{
	struct scoreboard_place *p = &b->place[place];
	int holder = place + 1;

	atomic_store(&p->ready, 0);
	scoreboard_end(p);
	(void)atomic_compare_exchange_strong(&b->long_lock, &holder, 0);
}

void
scoreboard_begin(struct scoreboard_place *p, const char *method,
    const char *uri, const char *id, int64_t until)
{
	size_t len = strcspn(uri, "?");

	(void)snprintf(p->request, sizeof(p->request), "%.64s %.16s %.*s", id,
	    method, len < PATH_LOGGED ? (int)len : PATH_LOGGED, uri);
	atomic_store(&p->until, until);
}

void
scoreboard_end(struct scoreboard_place *p)
{
	atomic_store(&p->until, 0);
	atomic_store(&p->holder, 0);
	p->request[0] = '\0';
}

void
scoreboard_count(struct scoreboard *b, int status, int64_t ms)
{
	static const int bounds[] = { SCOREBOARD_BOUNDS(BOUND_MS) };
	const int class = status / 100;
	int i;

	for (i = 0; i < SCOREBOARD_RANGES - 1 && bounds[i] < ms; i++)
		;
	atomic_fetch_add(&b->took[i], 1);
	atomic_fetch_add(&b->requests[class < 6 ? class : 5], 1);
	atomic_fetch_add(&b->busy_ms, ms);
}

/* Counts the other requests that take long in the caller's pool, in total and
 * of the same user and kind, and the maximum. */
struct longs {
	int all, own, most;
};

static struct longs
long_count(struct scoreboard *b, struct scoreboard_place *mine, int64_t own)
{
	struct longs n = { 0 };
	int64_t holder;
	int workers = 0, i;

	for (i = 0; i < SCOREBOARD_WORKERS; i++) {
		holder = atomic_load(&b->place[i].holder);
		if (holder == own)
			n.own++;
		if (atomic_load(&b->place[i].ready) == 0 ||
		    atomic_load(&b->place[i].pool) != atomic_load(&mine->pool))
			continue;
		workers++;
		if (holder != 0)
			n.all++;
	}
	n.most = workers < 2 ? 1 : workers / 2;
	return n;
}

/* Held briefly. If the holder dies, the master releases it. */
static void
long_lock(struct scoreboard *b, const struct scoreboard_place *mine)
{
	int unlocked = 0;

	while (!atomic_compare_exchange_strong(&b->long_lock, &unlocked,
	    (int)(mine - b->place) + 1)) {
		unlocked = 0;
		(void)sched_yield();
	}
}

enum scoreboard_long
scoreboard_long_begin(struct scoreboard *b, struct scoreboard_place *mine,
    enum scoreboard_kind kind, int64_t user)
{
	const int64_t own = user * SCOREBOARD_KIND__MAX + (int64_t)kind + 1;
	enum scoreboard_long may = SCOREBOARD_LONG_YES;
	struct longs n;

	long_lock(b, mine);
	n = long_count(b, mine, own);
	if (n.own >= SCOREBOARD_LONG_EACH)
		may = SCOREBOARD_LONG_USER;
	else if (n.all >= n.most)
		may = SCOREBOARD_LONG_FULL;
	else
		atomic_store(&mine->holder, own);
	atomic_store(&b->long_lock, 0);
	return may;
}

void
scoreboard_long_end(struct scoreboard_place *mine)
{
	atomic_store(&mine->holder, 0);
}
