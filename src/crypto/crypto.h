/* SPDX-License-Identifier: ISC */
/*
 * Hashing, random tokens, and sealing of what the database must not know,
 * all by libsodium.
 */
#ifndef SLIPWAY_CRYPTO_CRYPTO_H
#define SLIPWAY_CRYPTO_CRYPTO_H

#include <stdbool.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/field.h"

#define CRYPTO_HASH_HEX 65  /* SHA-256 in lower-case hex with its NUL */
#define CRYPTO_TOKEN_MAX 64 /* a token with its NUL */
#define CRYPTO_KEYS 64      /* in one file */
#define CRYPTO_PRINT 9      /* a fingerprint with its NUL */

/* Once, in main. */
MUSTCHECK const struct err *crypto_init(void);

void crypto_sha256(const void *data, size_t len, char out[CRYPTO_HASH_HEX]);
/* prefix + 256 random bits in base64url without padding. */
void crypto_token(const char *prefix, char out[CRYPTO_TOKEN_MAX]);
void crypto_random(void *out, size_t len);
/* HMAC-SHA-256 in lower-case hex. */
void crypto_hmac(const void *key, size_t keylen, const void *data, size_t len,
    char out[CRYPTO_HASH_HEX]);
/* The same of several pieces, one behind the other. */
void crypto_hmac_list(const void *key, size_t keylen, const struct blob *,
    size_t n, char out[CRYPTO_HASH_HEX]);
/* Without telling by time where they differ. */
bool crypto_equal(const char *a, const char *b);
/* base64url without padding, in the arena. */
char *crypto_base64url(struct arena *, const void *data, size_t len);
/* The usual alphabet, with padding (RFC 4648, 4). */
char *crypto_base64(struct arena *, const void *data, size_t len);
/* The bytes of such text, in the arena; false if it is none. */
bool crypto_base64_read(struct arena *, const char *text, size_t len,
    struct blob *out);
/* Bytes in lower-case hex, in the arena. */
char *crypto_hex(struct arena *, const void *data, size_t len);
/* S256 of a verifier (RFC 7636 4.2), in the arena. */
char *crypto_challenge(struct arena *, const char *verifier);

/* Keys from a file that only its owner (and group) may read: lines
 * "ID BASE64", the first seals, all open. */
struct keyring;
MUSTCHECK const struct err *keyring_open(const char *path,
    struct keyring **out);
void keyring_close(struct keyring *);
/* Takes up what the file has become, if it was changed.  If that cannot be
 * read, the keys stay as they are, and the error is told once. */
MUSTCHECK const struct err *keyring_renew(struct keyring *);
/* Makes the file (0640) or puts a new first key into it; on the disk when it
 * returns. */
MUSTCHECK const struct err *keyring_rotate(const char *path);
/* What anybody may know of a key. */
struct key_name {
	int64_t id;
	char print[CRYPTO_PRINT]; /* the same on every host that has it */
};
/* Names of all keys, the first one first; how many. */
size_t keyring_names(const struct keyring *, struct key_name out[CRYPTO_KEYS]);
/* Leaves the first key alone in the file, on the disk when it returns;
 * ERR_CONFLICT if that is not the one that is named. */
MUSTCHECK const struct err *keyring_prune(const char *path,
    const struct key_name *first);
/* Number of the first key, then HMAC-SHA-256 by one that follows from it, cut;
 * all in lower-case hex.  Without keys, 0 and a mere hash. */
void keyring_hmac(const struct keyring *, const char *purpose, const void *data,
    size_t len, char out[CRYPTO_HASH_HEX]);
/* Whether this came of it; true also where the key for it is gone, so that
 * nobody can tell. */
bool keyring_hmac_fits(const struct keyring *, const char *purpose,
    const void *data, size_t len, const char *mac);
/* XChaCha20-Poly1305 (draft-irtf-cfrg-xchacha). `purpose` is authenticated
 * with the text, so that a sealed value opens only where it belongs. */
MUSTCHECK const struct err *seal(const struct keyring *, struct arena *,
    const char *purpose, const char *text, struct blob *out);
MUSTCHECK const struct err *unseal(const struct keyring *, struct arena *,
    const char *purpose, struct blob sealed, char **out);
/* The number of the key that it says; 0 if it was never sealed. */
int64_t seal_key(struct blob sealed);
/* The same text sealed with the first key; it is not left in memory. */
MUSTCHECK const struct err *reseal(const struct keyring *, struct arena *,
    const char *purpose, struct blob sealed, struct blob *out);

#endif
