/* SPDX-License-Identifier: ISC */
#include "dispatch/task.h"

#include <assert.h>

#include "core/str.h"

#define DESCRIPTION_MAX ((size_t)32 << 20)
#define TICK_MS 50
#define TICK_WATCHED_MS 1000

struct task *
task_open(struct tasks *all, const struct run *run)
{
	struct task *t = mem_alloc(1, sizeof(*t));

	*t = (struct task){ .run = *run, .phase = PHASE_NEW };
	buf_init(&t->description, DESCRIPTION_MAX);
	clone_init(&t->clone);
	if (all->n == all->cap) {
		all->cap = all->cap == 0 ? 16 : 2 * all->cap;
		all->items = mem_grow(all->items, all->cap,
		    sizeof(struct task *));
	}
	all->items[all->n++] = t;
	return t;
}

struct task *
task_find(const struct tasks *all, int64_t id, int64_t epoch)
{
	size_t i;

	for (i = 0; i < all->n; i++)
		if (all->items[i]->run.id == id &&
		    all->items[i]->run.epoch == epoch)
			return all->items[i];
	return NULL;
}

void
task_move(struct task *t, enum phase phase)
{
	assert(phase_follows(t->phase, phase));
	t->phase = phase;
	t->since = time_mono_ms();
	t->retry_at = 0;
}

bool
task_is_live(const struct task *t)
{
	return phase_kinds[t->phase].is_live;
}

int64_t
task_tick(const struct task *t)
{
	return t->watch > 0 ? TICK_WATCHED_MS : TICK_MS;
}

size_t
tasks_live(const struct tasks *all)
{
	size_t i, n = 0;

	for (i = 0; i < all->n; i++)
		if (task_is_live(all->items[i]))
			n++;
	return n;
}

void
tasks_reap(struct tasks *all)
{
	size_t i, left = 0;

	for (i = 0; i < all->n; i++) {
		if (all->items[i]->phase == PHASE_CLOSED) {
			run_close(&all->items[i]->run);
			mem_free(all->items[i]);
		} else {
			all->items[left++] = all->items[i];
		}
	}
	all->n = left;
}
