/* SPDX-License-Identifier: ISC */
/*
 * Hashing, random tokens, HMAC and text encodings, based on libsodium.
 */
#ifndef SLIPWAY_CRYPTO_CRYPTO_H
#define SLIPWAY_CRYPTO_CRYPTO_H

#include <stdbool.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/field.h"

#define CRYPTO_HASH_HEX 65   /* SHA-256 in lower-case hex with its NUL */
#define CRYPTO_DIGEST_HEX 33 /* the same of a digest */
#define CRYPTO_TOKEN_MAX 64  /* a token with its NUL */

/* Call once, in main. */
MUSTCHECK const struct err *crypto_init(void);

void crypto_sha256(const void *data, size_t len, char out[CRYPTO_HASH_HEX]);
/* BLAKE2b with 128 bits, which takes a third of the time.  Not for what is
 * stored or sent to others, who expect SHA-256. */
void crypto_digest(const void *data, size_t len, char out[CRYPTO_DIGEST_HEX]);
/* Returns the prefix followed by 256 random bits in base64url without
 * padding. */
void crypto_token(const char *prefix, char out[CRYPTO_TOKEN_MAX]);
void crypto_random(void *out, size_t len);
/* HMAC-SHA-256 in lower-case hex. */
void crypto_hmac(const void *key, size_t keylen, const void *data, size_t len,
    char out[CRYPTO_HASH_HEX]);
/* Compares in constant time. */
bool crypto_equal(const char *a, const char *b);
/* base64url without padding, in the arena. */
char *crypto_base64url(struct arena *, const void *data, size_t len);
/* The usual alphabet, with padding (RFC 4648, 4). */
char *crypto_base64(struct arena *, const void *data, size_t len);
/* Decodes such text into the arena; false if it is malformed. */
bool crypto_base64_read(struct arena *, const char *text, size_t len,
    struct blob *out);
/* Bytes in lower-case hex, in the arena. */
char *crypto_hex(struct arena *, const void *data, size_t len);
/* S256 of a verifier (RFC 7636 4.2), in the arena. */
char *crypto_challenge(struct arena *, const char *verifier);

#endif
