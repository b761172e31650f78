/* SPDX-License-Identifier: ISC */
/*
 * Sealing for the dispatcher: X25519 sealed boxes, so that who seals cannot
 * open.  A value is sealed by itself, as base64, and may be copied as it is.
 */
#ifndef SLIPWAY_CRYPTO_BOX_H
#define SLIPWAY_CRYPTO_BOX_H

#include "core/arena.h"

/* The public half of a key, from a file of one line "ID BASE64". */
struct box;
MUSTCHECK const struct err *box_open(const char *path, struct box **out);
void box_close(struct box *);
/* Takes up what the file has become, if it was changed.  If that cannot be
 * read, the key stays as it is, and the error is told once. */
MUSTCHECK const struct err *box_renew(struct box *);
/* `purpose` is sealed with the text, and it opens for that only. */
MUSTCHECK const struct err *box_seal(const struct box *, struct arena *,
    const char *purpose, const char *text, const char **out);
/* The number of the key that it says; 0 if it was never sealed. */
int64_t box_key(struct arena *, const char *sealed);
/* Length of the text in it; 0 of what was never sealed. */
size_t box_length(const char *purpose, const char *sealed);

#endif
