/* SPDX-License-Identifier: ISC */
/* What stands in base64: a version, the number of the key, the sealed box of
 * purpose, NUL and text. */
#ifndef SLIPWAY_CRYPTO_BOXED_H
#define SLIPWAY_CRYPTO_BOXED_H

#include <sodium.h>

#include "crypto/keyfile.h"

#define BOXED_VERSION 1
#define BOXED_HEAD ((size_t)(1 + KEYFILE_ID))
#define BOXED_MORE (BOXED_HEAD + (size_t)crypto_box_SEALBYTES)

_Static_assert(KEYFILE_BYTES == crypto_box_PUBLICKEYBYTES,
    "the public half fills its place");
_Static_assert(KEYFILE_BYTES == crypto_box_SECRETKEYBYTES,
    "so does the private one");

#endif
