/* SPDX-License-Identifier: ISC */
/*
 * Shared by public_key.c and private_keyring.c.  A value sealed with a public
 * key is, in base64: a version, the id of the key, and the libsodium sealed box
 * of purpose, NUL and text.
 */
#ifndef SLIPWAY_CRYPTO_PUBLIC_INNER_H
#define SLIPWAY_CRYPTO_PUBLIC_INNER_H

#include <sodium.h>

#include "crypto/keyfile.h"

#define PUBLIC_SEAL_VERSION 1
#define PUBLIC_SEAL_HEAD ((size_t)(1 + KEYFILE_ID))
#define PUBLIC_SEAL_EXTRA (PUBLIC_SEAL_HEAD + (size_t)crypto_box_SEALBYTES)

_Static_assert(KEYFILE_BYTES == crypto_box_PUBLICKEYBYTES,
    "the public half fills its place");
_Static_assert(KEYFILE_BYTES == crypto_box_SECRETKEYBYTES,
    "the private half fills its place");

struct public_key {
	struct keyfile file; /* one key */
	char path[];
};

#endif
