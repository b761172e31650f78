/* SPDX-License-Identifier: ISC */
#include "api/board.h"

#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "core/str.h"

#define PATH_LOGGED 160
#define GIVE_WAY_MS 50 /* minimum time between two requests that give way */

void
board_clear(struct board *b, int place)
{
	struct board_place *p = &b->place[place];
	int holder = place + 1;

	atomic_store(&p->ready, 0);
	atomic_store(&p->waiter, 0);
	board_end(p);
	(void)atomic_compare_exchange_strong(&b->waits_lock, &holder, 0);
}

void
board_begin(struct board_place *p, const char *method, const char *uri,
    const char *id, int64_t until)
{
	size_t len = strcspn(uri, "?");

	(void)snprintf(p->request, sizeof(p->request), "%.64s %.16s %.*s", id,
	    method, len < PATH_LOGGED ? (int)len : PATH_LOGGED, uri);
	atomic_store(&p->until, until);
}

void
board_end(struct board_place *p)
{
	atomic_store(&p->until, 0);
	p->request[0] = '\0';
}

/* Counts the other requests that wait in the caller's pool, in total and of
 * this user, and the maximum. */
struct waits {
	int all, own, most;
};

static struct waits
waits_count(struct board *b, struct board_place *mine, int64_t user)
{
	struct waits n = { 0 };
	int64_t waiter;
	int workers = 0, i;

	for (i = 0; i < BOARD_WORKERS; i++) {
		waiter = atomic_load(&b->place[i].waiter);
		if (waiter == user)
			n.own++;
		if (atomic_load(&b->place[i].ready) == 0 ||
		    atomic_load(&b->place[i].pool) != atomic_load(&mine->pool))
			continue;
		workers++;
		if (waiter != 0)
			n.all++;
	}
	n.most = workers - (workers < 8 ? 1 : workers / 4);
	if (n.most < 1)
		n.most = 1;
	return n;
}

/* Held briefly. If the holder dies, the master releases it. */
static void
waits_lock(struct board *b, const struct board_place *mine)
{
	int unlocked = 0;

	while (!atomic_compare_exchange_strong(&b->waits_lock, &unlocked,
	    (int)(mine - b->place) + 1)) {
		unlocked = 0;
		(void)sched_yield();
	}
}

enum board_wait
board_wait_begin(struct board *b, struct board_place *mine, int64_t user)
{
	enum board_wait may = BOARD_WAIT_YES;
	struct waits n;

	waits_lock(b, mine);
	n = waits_count(b, mine, user);
	if (n.own >= BOARD_WAITS_EACH)
		may = BOARD_WAIT_USER;
	else if (n.all >= n.most)
		may = BOARD_WAIT_FULL;
	else
		atomic_store(&mine->waiter, user);
	atomic_store(&b->waits_lock, 0);
	return may;
}

void
board_wait_end(struct board_place *mine)
{
	atomic_store(&mine->waiter, 0);
}

bool
board_wait_over(struct board *b, int listen_fd, bool *seen)
{
	struct pollfd pfd = { .fd = listen_fd, .events = POLLIN };
	int64_t now = time_mono_ms(), last = atomic_load(&b->gave_way);

	if (poll(&pfd, 1, 0) != 1) {
		*seen = false;
		return false;
	}
	if (!*seen) { /* a free worker accepts it before the next check */
		*seen = true;
		return false;
	}
	return now - last >= GIVE_WAY_MS &&
	    atomic_compare_exchange_strong(&b->gave_way, &last, now);
}
