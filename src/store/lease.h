/* SPDX-License-Identifier: ISC */
/* Leases of all runners: when the next one expires, and whether it could have
 * been renewed. */
#ifndef SLIPWAY_STORE_LEASE_H
#define SLIPWAY_STORE_LEASE_H

#include "db/db.h"

/* Milliseconds until the first lease expires, negative if one has expired;
 * ERR_NOTFOUND if there is none. */
MUSTCHECK const struct err *lease_left(struct db *, struct arena *,
    int64_t *out);
/* The same as lease_try(), without a write: it finds a read-only server, but not
 * a full disk. */
MUSTCHECK const struct err *lease_look(struct db *);
/* Whether the database would accept a renewal now: a write that changes
 * nothing. */
MUSTCHECK const struct err *lease_try(struct db *);

#endif
