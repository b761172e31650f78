/* SPDX-License-Identifier: ISC */
/* Goes through all sealed values while the service runs: finds the key of each,
 * and seals it again with the first key. */
#ifndef SLIPWAY_CLI_ADMIN_RESEAL_H
#define SLIPWAY_CLI_ADMIN_RESEAL_H

#include "crypto/keyring.h"
#include "db/db.h"

struct public_key;
struct private_keyring;

enum reseal_file { RESEAL_KEYRING, RESEAL_PRIVATE, RESEAL__MAX };

/* A key file, and the number of values that depend on each key. */
struct reseal_keys {
	const char *path;
	size_t n;
	struct key_name name[KEYRING_KEYS]; /* the first one seals */
	int64_t values[KEYRING_KEYS];
};

enum reseal_flag {
	RESEAL_WRITE = 1
	    << 0, /* seals again; otherwise only counts and prints */
	RESEAL_QUIET = 1 << 1, /* counts only */
};

struct reseal {
	struct db *db; /* the caller owns this and the next three */
	const struct keyring *keyring;
	const struct private_keyring *private_keyring;
	const struct public_key *public_key;
	struct reseal_keys keys[RESEAL__MAX];
	int64_t unopened; /* values that no key decrypts */
	int64_t missed;   /* rows that changed during each attempt */
};

/* Fills in the names of the keys; the caller sets their paths. */
void reseal_begin(struct reseal *);
/* Goes through all values once and counts them. After an error, the values that
 * were stored before remain. */
MUSTCHECK const struct err *reseal_run(struct reseal *, unsigned flags);
/* Number of values that depend on other keys than the first ones. */
int64_t reseal_older(const struct reseal *);

#endif
