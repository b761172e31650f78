/* SPDX-License-Identifier: ISC */
/* One process of a pool: takes connections, one at a time. */
#ifndef SLIPWAY_API_WORKER_H
#define SLIPWAY_API_WORKER_H

#include "api/board.h"
#include "api/route.h"

/* Exit status of one that ended at the deadline of its request. */
#define WORKER_LATE 124

struct worker {
	const struct settings *settings;
	struct keyring *keyring;       /* NULL = none */
	struct public_key *public_key; /* NULL = none */
	struct board *board;
	enum route_pool pool;
	pid_t master;
	int place;     /* in board->place */
	int listen_fd; /* not blocking */
	/* Opens the database without connecting, and compares its tables with
	 * our statements. */
	const struct err *(*database)(const struct settings *, struct db **out);
	const struct err *(*check)(struct db *);
};

/* In the child. SIGTERM: serves who waits on the socket, then ends; SIGQUIT:
 * ends after the request at hand. */
_Noreturn void worker_run(const struct worker *);

#endif
