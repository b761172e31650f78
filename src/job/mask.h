/* SPDX-License-Identifier: ISC */
/*
 * Secrets in a stream of bytes become `***`.
 *
 * A best effort against leaking by accident: of each value itself, of each of
 * its lines, and of what base64 (at any alignment, and in lines), URL, JSON and
 * shell quoting make of it, where that has at least MASK_MIN bytes.  A script can always print a secret in a
 * form that nobody foresees.
 */
#ifndef SLIPWAY_JOB_MASK_H
#define SLIPWAY_JOB_MASK_H

#include <stdbool.h>

#include "core/arena.h"
#include "core/buf.h"

#define MASK_MIN 4
#define MASK_SURE 8 /* so much of a secret is hardly there by chance */

struct mask;

/* Lives in the arena but for a buffer that mask_close frees. */
struct mask *mask_open(struct arena *);
void mask_close(struct mask *);
void mask_add(struct mask *, const char *value, size_t len);

/* Appends to `out` what can be said for sure after these bytes too; the
 * beginning of what may be a secret is kept back. */
void mask_feed(struct mask *, const char *data, size_t len, struct buf *out);
/* Whether something is kept back that can be flushed. */
bool mask_held(const struct mask *);
/* Appends what is kept back, if it is less than MASK_SURE bytes; should that go
 * on as a secret, the rest of it is still masked. */
void mask_flush(struct mask *, struct buf *out);
/* Appends what is kept back: the stream ends here. */
void mask_finish(struct mask *, struct buf *out);

#endif
