/* SPDX-License-Identifier: ISC */
/* All that is stored under keys: which key each value hangs on, and sealing it
 * anew with the first one, beside the service. */
#ifndef SLIPWAY_CLI_ADMIN_RESEAL_H
#define SLIPWAY_CLI_ADMIN_RESEAL_H

#include "crypto/keyring.h"
#include "db/db.h"

struct public_key;
struct private_keyring;

enum reseal_file { RESEAL_KEYRING, RESEAL_PRIVATE, RESEAL__MAX };

/* A file of keys, and how many values hang on each. */
struct reseal_keys {
	const char *path;
	size_t n;
	struct key_name name[KEYRING_KEYS]; /* the first seals */
	int64_t values[KEYRING_KEYS];
};

enum reseal_flag {
	RESEAL_WRITE = 1 << 0, /* seals anew; else it is told what would be */
	RESEAL_QUIET = 1 << 1, /* counts alone */
};

struct reseal {
	struct db *db; /* this one and the next three are the caller's */
	const struct keyring *keyring;
	const struct private_keyring *private_keyring;
	const struct public_key *public_key;
	struct reseal_keys keys[RESEAL__MAX];
	int64_t unopened; /* values that no key opens: none hangs on one */
	int64_t missed;   /* rows that were changed whenever they were tried */
};

/* Names the keys; their paths are the caller's. */
void reseal_begin(struct reseal *);
/* Goes through all of it once, and counts anew.  What is done when it fails
 * stays done. */
MUSTCHECK const struct err *reseal_run(struct reseal *, unsigned flags);
/* Values that hang on other keys than the first ones. */
int64_t reseal_older(const struct reseal *);

#endif
