/* SPDX-License-Identifier: ISC */
/*
 * The keys of the service, as loaded from its key file: lines "ID BASE64", the
 * first seals, all unseal.  Only the owner and the group may read the file.
 */
#ifndef SLIPWAY_CRYPTO_KEYRING_H
#define SLIPWAY_CRYPTO_KEYRING_H

#include <stdbool.h>

#include "core/arena.h"
#include "core/field.h"
#include "crypto/crypto.h"
#include "crypto/key_name.h"

struct keyring;
MUSTCHECK const struct err *keyring_open(const char *path,
    struct keyring **out);
void keyring_close(struct keyring *);
/* Loads the file again if it has changed.  If that fails, the keys stay as
 * they are, and the error is reported once. */
MUSTCHECK const struct err *keyring_renew(struct keyring *);
/* Creates the file (0640) or puts a new first key into it; on the disk when it
 * returns. */
MUSTCHECK const struct err *keyring_rotate(const char *path);
/* Names of all keys, the first one first; returns their number. */
size_t keyring_names(const struct keyring *, struct key_name out[KEYRING_KEYS]);
/* Removes all keys but the first from the file, on the disk when it returns;
 * ERR_CONFLICT if `first` is not the first. */
MUSTCHECK const struct err *keyring_prune(const char *path,
    const struct key_name *first);

/* XChaCha20-Poly1305 (draft-irtf-cfrg-xchacha).  `purpose` is authenticated
 * with the text: a sealed value unseals for that purpose only. */
MUSTCHECK const struct err *keyring_seal(const struct keyring *, struct arena *,
    const char *purpose, const char *text, struct blob *out);
MUSTCHECK const struct err *keyring_unseal(const struct keyring *,
    struct arena *, const char *purpose, struct blob sealed, char **out);
/* Seals the same text with the first key, and clears it from memory. */
MUSTCHECK const struct err *keyring_reseal(const struct keyring *,
    struct arena *, const char *purpose, struct blob sealed, struct blob *out);
/* The id of the key that sealed the value; 0 if it is not a sealed value. */
int64_t keyring_sealed_with(struct blob sealed);

/* Id of the first key, then HMAC-SHA-256 by a key derived from it, truncated;
 * all in lower-case hex.  Without keys, 0 and a plain hash. */
void keyring_hmac(const struct keyring *, const char *purpose, const void *data,
    size_t len, char out[CRYPTO_HASH_HEX]);
/* Whether `mac` is that of the data; true also if its key was removed, as it
 * cannot be checked then. */
bool keyring_hmac_fits(const struct keyring *, const char *purpose,
    const void *data, size_t len, const char *mac);

#endif
