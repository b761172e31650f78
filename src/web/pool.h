/* SPDX-License-Identifier: ISC */
/* The master, which keeps the workers of all pools running. */
#ifndef SLIPWAY_WEB_POOL_H
#define SLIPWAY_WEB_POOL_H

#include "web/listen.h"
#include "web/worker.h"

struct pool {
	struct listen_set sockets;
	struct worker worker; /* shared by all workers; the settings can
			       * change */
	/* Reads the configuration again; on an error nothing changes. */
	const struct err *(*reload)(struct worker *shared);
};

/* Blocks the signals that the master waits for. Call it before the first
 * fork. */
void pool_signals(void);
/* Runs until SIGTERM or SIGINT; returns the exit status. */
int pool_run(struct pool *);

#endif
