/* SPDX-License-Identifier: ISC */
/*
 * Ids below the newest one that no deployment has yet.  A transaction takes its
 * id when it inserts the row, but others see the row only when it is committed,
 * and by then may have seen greater ids: of other transactions, or of another
 * server of a cluster.  So these ids are read again for a while.
 */
#ifndef SLIPWAY_LIVE_GAPS_H
#define SLIPWAY_LIVE_GAPS_H

#include <stddef.h>
#include <stdint.h>

#define GAPS_MAX 4096 /* of more, the oldest are forgotten */

struct gap {
	int64_t id;
	int64_t until; /* monotonic ms */
};

/* Oldest first; begins with zeros. */
struct gaps {
	struct gap all[GAPS_MAX];
	size_t n;
};

/* Adds the ids between two, or the last of them if there are many. */
void gaps_add(struct gaps *, int64_t after, int64_t before, int64_t now);
/* Removes those that no transaction can have any more. */
void gaps_expire(struct gaps *, int64_t now);
/* Removes one, whose row was read. */
void gaps_close(struct gaps *, int64_t id);

#endif
