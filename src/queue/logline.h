/* SPDX-License-Identifier: ISC */
/* Finds the lines of a log without reading all of the log. */
#ifndef SLIPWAY_QUEUE_LOGLINE_H
#define SLIPWAY_QUEUE_LOGLINE_H

#include "db/db.h"

#define LOGLINE_EVERY ((int64_t)256 * 1024)

/* A place in a log. */
struct logline_place {
	int64_t offset;
	int64_t line;      /* that contains this byte, from 1 */
	struct when at;    /* when the byte was written; none = unknown */
	struct maybe step; /* its position; none = before the first step */
};

/* Lists a place about every LOGLINE_EVERY bytes and the start of each step,
 * struct logline_place by offset. */
MUSTCHECK const struct err *logline_index(struct db *, struct arena *,
    int64_t deployment_id, struct list *out);
/* The line that contains that byte, or the last one. */
MUSTCHECK const struct err *logline_at(struct db *, int64_t deployment_id,
    int64_t offset, int64_t *line);

#endif
