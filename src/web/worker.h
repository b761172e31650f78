/* SPDX-License-Identifier: ISC */
/* A process of a pool: serves connections one at a time. */
#ifndef SLIPWAY_WEB_WORKER_H
#define SLIPWAY_WEB_WORKER_H

#include "web/route.h"
#include "web/scoreboard.h"

struct worker {
	const struct settings *settings;
	struct keyring *keyring;       /* NULL = none */
	struct public_key *public_key; /* NULL = none */
	struct scoreboard *scoreboard;
	enum route_pool pool;
	pid_t master;
	int place;     /* in scoreboard->place */
	int listen_fd; /* nonblocking */
	/* Opens the database without connecting, and compares its tables with
	 * the statements. */
	const struct err *(*database)(const struct settings *, struct db **out);
	const struct err *(*check)(struct db *);
};

/* Runs in the child. SIGTERM: serves the queued connections, then exits.
 * SIGQUIT: exits after the current request. */
_Noreturn void worker_run(const struct worker *);

#endif
