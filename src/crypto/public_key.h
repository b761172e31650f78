/* SPDX-License-Identifier: ISC */
/*
 * The public key: X25519 sealed boxes, which cannot be opened with the public
 * key alone.  A sealed value is self-contained base64 text and can be copied.
 */
#ifndef SLIPWAY_CRYPTO_PUBLIC_KEY_H
#define SLIPWAY_CRYPTO_PUBLIC_KEY_H

#include "core/arena.h"

/* The public half of a key, from a file of one line "ID BASE64". */
struct public_key;
MUSTCHECK const struct err *public_key_open(const char *path,
    struct public_key **out);
void public_key_close(struct public_key *);
/* Loads the file again if it has changed.  If that fails, the key stays as it
 * is, and the error is reported once. */
MUSTCHECK const struct err *public_key_renew(struct public_key *);
/* `purpose` is sealed with the text: the value unseals for that purpose
 * only. */
MUSTCHECK const struct err *public_key_seal(const struct public_key *,
    struct arena *, const char *purpose, const char *text, const char **out);
/* The id of the key that sealed the value; 0 if it is not a sealed value. */
int64_t public_key_sealed_with(struct arena *, const char *sealed);
/* Length of the text in a sealed value; 0 if it is not a sealed value. */
size_t public_key_text_length(const char *purpose, const char *sealed);

#endif
