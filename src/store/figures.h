/* SPDX-License-Identifier: ISC */
/* Figures for monitoring. */
#ifndef SLIPWAY_STORE_FIGURES_H
#define SLIPWAY_STORE_FIGURES_H

#include "db/db.h"

struct figures {
	int64_t pending;
	int64_t running;
	int64_t oldest_seconds; /* waiting time of the oldest pending one that
				 * does not wait for approval */
};

MUSTCHECK const struct err *figures_read(struct db *, struct arena *,
    struct figures *out);

#endif
