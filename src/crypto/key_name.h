/* SPDX-License-Identifier: ISC */
/* The public description of a key. */
#ifndef SLIPWAY_CRYPTO_KEY_NAME_H
#define SLIPWAY_CRYPTO_KEY_NAME_H

#include <stdint.h>

#define KEYRING_KEYS 64 /* in one file */
#define KEY_PRINT 9     /* a fingerprint with its NUL */

struct key_name {
	int64_t id;
	char print[KEY_PRINT]; /* the same on every host that has it */
};

#endif
