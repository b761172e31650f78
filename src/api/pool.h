/* SPDX-License-Identifier: ISC */
/* The master: keeps the workers of all pools running. */
#ifndef SLIPWAY_API_POOL_H
#define SLIPWAY_API_POOL_H

#include "api/listen.h"
#include "api/worker.h"

struct pool {
	struct listen_set sockets;
	struct worker worker; /* what all workers share; settings change */
	/* Reads the configuration again; on an error all stays as it is. */
	const struct err *(*reload)(struct worker *shared);
};

/* Blocks the signals that the master waits for; before the first fork. */
void pool_signals(void);
/* Until SIGTERM or SIGINT; the exit status. */
int pool_run(struct pool *);

#endif
