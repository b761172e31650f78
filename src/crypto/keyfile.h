/* SPDX-License-Identifier: ISC */
/* Files of keys, lines "ID BASE64", for the rest of this folder. */
#ifndef SLIPWAY_CRYPTO_KEYFILE_H
#define SLIPWAY_CRYPTO_KEYFILE_H

#include <sys/types.h>

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "core/err.h"
#include "crypto/key_name.h"

#define KEYFILE_KEYS KEYRING_KEYS
#define KEYFILE_BYTES 32 /* of any key here */
#define KEYFILE_ID 4     /* of its id, before the sealed text */
#define KEYFILE_NOBODY ((uid_t)-1)

/* Who may read it: the service, only the dispatcher, or everybody. */
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

/* Identifies the version of the file that was read. */
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

/* Reads the file, which must contain at least one key.  ERR_CONFIG says what is
 * wrong with the file or its content, with ENOENT if it does not exist. */
MUSTCHECK const struct err *keyfile_read(const char *path, enum keyfile_kind,
    struct keyfile *out);
/* Whether the file was replaced or changed; records the new version as seen. */
bool keyfile_changed(struct keyfile *, const char *path);
/* The key with that id; NULL if there is none. */
const struct keyfile_key *keyfile_find(const struct keyfile *, int64_t id);
void keyfile_id_put(unsigned char out[KEYFILE_ID], int64_t id);
int64_t keyfile_id_get(const unsigned char at[KEYFILE_ID]);
/* An id that no key has or ever had. */
int64_t keyfile_next(const struct keyfile *);
/* Adds a key in front of the others; ERR_CONFIG, with the path, if there are
 * too many. */
MUSTCHECK const struct err *keyfile_push(struct keyfile *, const char *path,
    const struct keyfile_key *);
/* Writes the file atomically and syncs it.  A file that is replaced keeps its
 * owner; a new one gets `owner` if root creates it. */
MUSTCHECK const struct err *keyfile_write(const char *path, enum keyfile_kind,
    const struct keyfile *, uid_t owner);

/* Removes all keys but the first; ERR_CONFLICT if that has another id. */
MUSTCHECK const struct err *keyfile_prune(const char *path, enum keyfile_kind,
    int64_t id);
/* Id and fingerprint; the fingerprint does not reveal the bytes. */
void keyfile_name(const struct keyfile_key *,
    const unsigned char bytes[KEYFILE_BYTES], struct key_name *out);

#endif
