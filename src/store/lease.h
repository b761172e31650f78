/* SPDX-License-Identifier: ISC */
/* Leases of all runners: when one runs out, and whether it could have been
 * renewed. */
#ifndef SLIPWAY_STORE_LEASE_H
#define SLIPWAY_STORE_LEASE_H

#include "db/db.h"

/* Milliseconds until the first of all runs out, below 0 if one has;
 * ERR_NOTFOUND if there is none. */
MUSTCHECK const struct err *lease_left(struct db *, struct arena *,
    int64_t *out);
/* Whether a renewal would be taken now: a write that changes nothing. */
MUSTCHECK const struct err *lease_try(struct db *);

#endif
