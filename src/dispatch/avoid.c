/* SPDX-License-Identifier: ISC */
#include "dispatch/avoid.h"

#include "core/str.h"
#include "dispatch/backoff.h"

#define PAUSE_MIN 200 /* milliseconds */
#define PAUSE_MAX 10000
#define GIVEN_MS 15000 /* other runners poll more often */

int64_t
avoid_pause(int64_t pause)
{
	return backoff(pause, PAUSE_MIN, PAUSE_MAX);
}

/* NULL if the list is full. */
static struct avoided *
avoid_find(struct avoid *list, int64_t id)
{
	struct avoided *one = list->items;

	while (one < list->items + list->n && one->id != id)
		one++;
	if (one == list->items + CLAIM_AVOID)
		return NULL;
	if (one == list->items + list->n) {
		list->n++;
		*one = (struct avoided){ .id = id };
	}
	return one;
}

bool
avoid_add(struct avoid *list, int64_t id)
{
	struct avoided *one = avoid_find(list, id);

	if (one == NULL)
		return false;
	one->is_given_back = false;
	one->pause = avoid_pause(one->pause);
	one->at = time_mono_ms() + one->pause;
	return true;
}

bool
avoid_give_back(struct avoid *list, int64_t id)
{
	struct avoided *one = avoid_find(list, id);

	if (one == NULL)
		return false;
	one->is_given_back = true;
	one->at = time_mono_ms() + GIVEN_MS;
	return true;
}

/* Forgets those that were not rejected again. */
size_t
avoid_now(struct avoid *list, int64_t ids[CLAIM_AVOID], int64_t *due)
{
	const int64_t now = time_mono_ms();
	size_t i, kept = 0, n = 0;

	*due = INT64_MAX;
	for (i = 0; i < list->n; i++) {
		if (list->items[i].at + PAUSE_MAX < now)
			continue;
		list->items[kept++] = list->items[i];
		if (list->items[i].at <= now)
			continue;
		ids[n++] = list->items[i].id;
		if (list->items[i].at < *due)
			*due = list->items[i].at;
	}
	list->n = kept;
	return n;
}

void
avoid_none(struct avoid *list)
{
	size_t i;

	for (i = 0; i < list->n; i++)
		if (!list->items[i].is_given_back)
			list->items[i].at = 0;
}
