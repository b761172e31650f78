/* SPDX-License-Identifier: ISC */
/*
 * Replaces secrets in a stream of bytes by `***`.
 *
 * This is a best effort against accidental leaks.  It finds
 * - the value itself, each of its lines, and its lines or words joined by one
 *   blank or by nothing;
 * - the value in base64 and base64url, alone or inside a longer text, at any
 *   alignment, in one line or broken into lines of any width (LF, CRLF, the
 *   escapes of both, each line indented by up to 64 blanks);
 * - the value in hexadecimal of either case, with or without separators (blank,
 *   colon, comma, semicolon, hyphen, 0x, \x) between bytes, and broken likewise;
 * - the value as quoted in URLs and forms (escapes of either case), JSON, JSON in
 *   JSON, shells, SQL, CSV, common languages, HTML and XML;
 * - each of these with control sequences (ESC [) between its characters.
 *
 * A value that ends in a line break is also found without it.
 *
 * It does not find values shorter than MASK_MIN bytes; single lines of a value
 * in encoded form; nested encodings, such as base64 in a URL whose + and / are
 * escaped; the value itself broken into lines; hexadecimal digits of mixed
 * case; dumps with an address or a text column in each line (xxd, hexdump -C,
 * od without -An); other bases, compression, encryption and whatever else a
 * script does to a value.  In base64 inside a longer text, the first and last
 * characters of the value also contain bits of its neighbours; these characters
 * remain.
 */
#ifndef SLIPWAY_JOB_MASK_H
#define SLIPWAY_JOB_MASK_H

#include <stdbool.h>

#include "core/arena.h"
#include "core/buf.h"

#define MASK_MIN 4
#define MASK_SURE 8 /* so many bytes of a secret hardly occur by chance */

struct mask;

/* Lives in the arena, except for a buffer that mask_close frees. */
struct mask *mask_open(struct arena *);
void mask_close(struct mask *);
void mask_add(struct mask *, const char *value, size_t len);

/* Appends the bytes that are certainly no part of a secret to `out`; holds back
 * those that may begin one. */
void mask_feed(struct mask *, const char *data, size_t len, struct buf *out);
/* Whether something is held back that can be flushed. */
bool mask_held(const struct mask *);
/* Appends the bytes held back, if they are fewer than MASK_SURE; if a secret
 * continues afterwards, the rest is still masked. */
void mask_flush(struct mask *, struct buf *out);
/* Appends the bytes held back, at the end of the stream. */
void mask_finish(struct mask *, struct buf *out);

#endif
