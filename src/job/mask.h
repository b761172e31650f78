/* SPDX-License-Identifier: ISC */
/*
 * Replaces secrets in a stream of bytes by `***`.
 *
 * This is a best effort against a leak by accident.  It finds
 * - the value itself, and each of its lines;
 * - the value in base64 and base64url, alone or inside a longer text, at any
 *   alignment, in one line or broken into lines of any width (LF, CRLF, the
 *   escapes of both, each line indented by up to 64 blanks);
 * - the value in hexadecimal of either case, with or without separators (blank,
 *   colon, comma, semicolon, hyphen, 0x, \x) between bytes, and broken likewise;
 * - the value as URLs and forms (escapes of either case), JSON and shells quote
 *   it.
 * A value that ends in a line break is also found without it.
 *
 * It does not find anything shorter than MASK_MIN bytes; a line of the value in
 * an encoded form of its own; one encoding inside another, such as base64 in a
 * URL whose + and / are escaped; the value itself where something breaks it
 * into lines; upper and lower case mixed in hexadecimal digits; dumps with an
 * address or a column of text in each line (xxd, hexdump -C, od without -An);
 * other bases, compression, encryption and whatever else a script does to a
 * value.  In base64 inside a longer text, the first and the last character of
 * the value also hold bits of its neighbours; these characters stay.
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
