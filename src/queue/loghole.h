/* SPDX-License-Identifier: ISC */
/*
 * Holes of logs: bytes that were printed, but that the database has lost.  A
 * reader gets a line of the same length instead, so that the offsets of all
 * that is stored stay the same.
 */
#ifndef SLIPWAY_QUEUE_LOGHOLE_H
#define SLIPWAY_QUEUE_LOGHOLE_H

#include "db/db.h"

struct loghole {
	int64_t start;
	int64_t end;
};

/* Finds the hole that contains a byte that no chunk contains.  Without one, at
 * the end of the log, it is empty. */
MUSTCHECK const struct err *loghole_find(struct db *, struct arena *,
    int64_t deployment_id, int64_t at, struct loghole *out);
/* How many of the first `size` bytes are not stored.  Reads all chunks. */
MUSTCHECK const struct err *loghole_missing(struct db *, struct arena *,
    int64_t deployment_id, int64_t size, int64_t *out);
/* Writes `len` bytes of the line that stands for the hole, from the byte `from`
 * of the log on. */
void loghole_write(const struct loghole *, int64_t from, char *out, size_t len);
/* The line breaks in all of it. */
int64_t loghole_breaks(const struct loghole *);

#endif
