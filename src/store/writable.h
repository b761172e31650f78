/* SPDX-License-Identifier: ISC */
/* Whether the database accepts writes.  Many processes may ask often: they share
 * what is known, so that few of them write. */
#ifndef SLIPWAY_STORE_WRITABLE_H
#define SLIPWAY_STORE_WRITABLE_H

#include <stdatomic.h>

#include "db/db.h"

/* Times are monotonic milliseconds, 0 = never. */
struct writable {
	atomic_int_least64_t begun; /* the last try */
	atomic_int_least64_t ended;
	atomic_int error; /* of it: a number of the server, -1 = another */
	atomic_int_least64_t rejected; /* a write, because of the server */
	atomic_int_least64_t full;     /* the same because of its disk */
	atomic_int_least64_t written;
};

/* Records what became of a request that writes; NULL = it succeeded. */
void writable_note(struct writable *, const struct err *);
/* An error if the database accepts no writes.  It looks without writing, and
 * writes at most twice a minute, or once a second after a failure. */
MUSTCHECK const struct err *writable_check(struct writable *, struct db *);
/* The same for one caller: it writes. */
MUSTCHECK const struct err *writable_try(struct db *);

#endif
