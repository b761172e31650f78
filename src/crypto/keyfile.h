/* SPDX-License-Identifier: ISC */
/* Files of keys, lines "ID BASE64", for the rest of this folder. */
#ifndef SLIPWAY_CRYPTO_KEYFILE_H
#define SLIPWAY_CRYPTO_KEYFILE_H

#include <sys/types.h>

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "crypto/keyring.h"

#define KEYFILE_KEYS KEYRING_KEYS
#define KEYFILE_BYTES 32 /* of any key here */
#define KEYFILE_ID 4     /* of its number, before what is sealed */
#define KEYFILE_NOBODY ((uid_t)-1)

/* Who may read it: the service, the dispatcher alone, everybody. */
enum keyfile_kind {
	KEYFILE_SHARED,
	KEYFILE_PRIVATE,
	KEYFILE_PUBLIC,
	KEYFILE__MAX
};

struct keyfile_key {
	int64_t id;
	unsigned char bytes[KEYFILE_BYTES];
};

/* The file that was read: another, or a change of it, looks different. */
struct keyfile_seen {
	dev_t device;
	ino_t file;
	off_t size;
	struct timespec changed;
};

struct keyfile {
	struct keyfile_key keys[KEYFILE_KEYS]; /* the first is the newest */
	size_t n;
	struct keyfile_seen seen;
};

/* At least one key; ERR_CONFIG says what is wrong with file or content, with
 * ENOENT if there is none. */
MUSTCHECK const struct err *keyfile_read(const char *path, enum keyfile_kind,
    struct keyfile *out);
/* Whether the path has another file by now, or a changed one; takes that one as
 * seen. */
bool keyfile_changed(struct keyfile *, const char *path);
/* NULL if there is none of that number. */
const struct keyfile_key *keyfile_find(const struct keyfile *, int64_t id);
void keyfile_id_put(unsigned char out[KEYFILE_ID], int64_t id);
int64_t keyfile_id_get(const unsigned char at[KEYFILE_ID]);
/* A number that none of them has, and none had. */
int64_t keyfile_next(const struct keyfile *);
/* Puts one before the others; ERR_CONFIG, with the path, if there are too
 * many. */
MUSTCHECK const struct err *keyfile_push(struct keyfile *, const char *path,
    const struct keyfile_key *);
/* Whole or not at all, and on the disk when it returns.  A file that is
 * replaced keeps its owner, a new one gets `owner` if root makes it. */
MUSTCHECK const struct err *keyfile_write(const char *path, enum keyfile_kind,
    const struct keyfile *, uid_t owner);

/* Leaves the first key alone; ERR_CONFLICT if it has another number. */
MUSTCHECK const struct err *keyfile_prune(const char *path, enum keyfile_kind,
    int64_t id);
/* Number and fingerprint, which follows from the bytes and does not lead back
 * to them. */
void keyfile_name(const struct keyfile_key *,
    const unsigned char bytes[KEYFILE_BYTES], struct key_name *out);

#endif
