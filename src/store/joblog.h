/* SPDX-License-Identifier: ISC */
/*
 * Logs of deployments: chunks keyed by where they stand, so that storing the
 * same bytes twice changes nothing.  While a deployment runs chunks are small
 * and plain; at the end they are packed into larger deflated ones (RFC 1950).
 */
#ifndef SLIPWAY_STORE_JOBLOG_H
#define SLIPWAY_STORE_JOBLOG_H

#include "db/db.h"

#define JOBLOG_CHUNK ((size_t)64 * 1024)
#define JOBLOG_PACKED ((size_t)256 * 1024)

struct joblog_state {
	int64_t size;  /* bytes readable now */
	bool complete; /* nothing will be added */
	bool pruned;   /* complete, but the bytes are gone */
};

/* ERR_NOTFOUND if there is no such deployment. */
MUSTCHECK const struct err *joblog_state(struct db *, struct arena *,
    int64_t deployment_id, struct joblog_state *out);
/* At most `max` bytes from `offset` on, in the arena; fewer at the end. */
MUSTCHECK const struct err *joblog_read(struct db *, struct arena *,
    int64_t deployment_id, int64_t offset, size_t max, struct blob *out);
/* The bytes of the log from `offset` on (no more than JOBLOG_CHUNK), under
 * the lease: ERR_PRECONDITION if `epoch` is no longer the deployment's.  After
 * an error it may be repeated, also with more bytes. */
MUSTCHECK const struct err *joblog_append(struct db *, int64_t deployment_id,
    int64_t epoch, int64_t offset, const void *data, size_t len);
/* Rewrites a finished log in packed chunks; may be repeated. */
MUSTCHECK const struct err *joblog_pack(struct db *, struct arena *,
    int64_t deployment_id);
/* Removes logs that ended more than `days` days ago (0 = never) and the
 * oldest while all together hold more than total_max bytes (0 = any);
 * running ones stay. At most 100 a call; how many in `out`. */
MUSTCHECK const struct err *joblog_prune(struct db *, int64_t days,
    int64_t total_max, int64_t *out);

#endif
