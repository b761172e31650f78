/* SPDX-License-Identifier: ISC */
/*
 * The private keys: they unseal what the public key seals.  They are separate
 * so that the API has no access to them: only the dispatcher and slipway-admin
 * include this file.
 */
#ifndef SLIPWAY_CRYPTO_PRIVATE_KEYRING_H
#define SLIPWAY_CRYPTO_PRIVATE_KEYRING_H

#include <sys/types.h>

#include "core/arena.h"
#include "crypto/keyring.h"
#include "crypto/public_key.h"

/* The private keys, lines "ID BASE64": the first is the current one, all
 * unseal.  Only the owner may read the file. */
struct private_keyring;
MUSTCHECK const struct err *private_keyring_open(const char *path,
    struct private_keyring **out);
void private_keyring_close(struct private_keyring *);
/* Returns the text, in the arena.  ERR_CONFIG if the key is missing,
 * ERR_INTERNAL if the value is damaged or was sealed for another purpose; the
 * message calls the value "it". */
MUSTCHECK const struct err *private_keyring_unseal(const struct private_keyring
						       *,
    struct arena *, const char *purpose, const char *sealed, const char **out);
/* Seals the same text with the public key, and clears it from memory. */
MUSTCHECK const struct err *private_keyring_reseal(const struct private_keyring
						       *,
    const struct public_key *, struct arena *, const char *purpose,
    const char *sealed, const char **out);
/* Names of all keys, by their public halves, the first one first; returns their
 * number. */
size_t private_keyring_names(const struct private_keyring *,
    struct key_name out[KEYRING_KEYS]);

/* The private key to which a public key belongs. */
enum key_match { KEY_MATCH_CURRENT, KEY_MATCH_OLDER, KEY_MATCH_NONE };
enum key_match private_keyring_match(const struct private_keyring *,
    const struct public_key *);

/* Creates both files, or adds a new first key to the private one and then its
 * public half to the public one, so that a value sealed in between can be
 * unsealed.  If root creates the private file, it belongs to `owner`. */
MUSTCHECK const struct err *private_keyring_rotate(const char *path,
    const char *public_path, uid_t owner);
/* Removes all keys but the first from the private file, on the disk when it
 * returns; ERR_CONFLICT if `first` is not the first. */
MUSTCHECK const struct err *private_keyring_prune(const char *path,
    const struct key_name *first);
/* Locks the key files for one process: ERR_CONFLICT while another has the
 * lock.  The lock lasts until `out` is closed; -1 if the file does not exist
 * yet. */
MUSTCHECK const struct err *private_keyring_lock(const char *path, int *out);

#endif
