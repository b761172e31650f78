/* SPDX-License-Identifier: ISC */
/*
 * Logs of deployments: chunks keyed by their offset, so that storing the same
 * bytes twice changes nothing. While a deployment runs, chunks are small and
 * plain; afterwards they are rewritten as larger compressed ones (RFC 1950).
 */
#ifndef SLIPWAY_QUEUE_JOBLOG_H
#define SLIPWAY_QUEUE_JOBLOG_H

#include "db/db.h"

#define JOBLOG_CHUNK ((size_t)64 * 1024)
#define JOBLOG_PACKED ((size_t)256 * 1024)
#define JOBLOG_PRUNED 100

struct joblog_state {
	int64_t size;  /* bytes readable now */
	bool complete; /* nothing will be added */
	bool pruned;   /* complete, but the bytes were deleted */
};

/* ERR_NOTFOUND if the deployment is unknown. */
MUSTCHECK const struct err *joblog_state(struct db *, struct arena *,
    int64_t deployment_id, struct joblog_state *out);
/* How many bytes are stored from the start without a gap. */
MUSTCHECK const struct err *joblog_stored(struct db *, struct arena *,
    int64_t deployment_id, int64_t *out);
/* Reads at most `max` bytes from `offset`, in the arena; fewer at the end. A line
 * of the same length stands for bytes that are missing (loghole.h). */
MUSTCHECK const struct err *joblog_read(struct db *, struct arena *,
    int64_t deployment_id, int64_t offset, size_t max, struct blob *out);
/* Stores bytes of the log at `offset` (no more than JOBLOG_CHUNK), under the
 * lease: ERR_PRECONDITION if `epoch` is no longer the deployment's. After an
 * error it may be repeated, with more bytes if necessary. */
MUSTCHECK const struct err *joblog_append(struct db *, int64_t deployment_id,
    int64_t epoch, int64_t offset, const void *data, size_t len);
/* Rewrites a finished log in compressed chunks; may be repeated. */
MUSTCHECK const struct err *joblog_pack(struct db *, struct arena *,
    int64_t deployment_id);
/* Number of line breaks. */
int64_t joblog_breaks(const void *data, size_t len);
/* Deletes logs of deployments that ended more than `days` days ago (0 = never),
 * and the oldest logs while all together have more than total_max bytes (0 = no
 * limit). Running deployments are not affected. Deletes at most JOBLOG_PRUNED
 * logs per call; `out` is their number. */
MUSTCHECK const struct err *joblog_prune(struct db *, int64_t days,
    int64_t total_max, int64_t *out);

#endif
