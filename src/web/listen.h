/* SPDX-License-Identifier: ISC */
/* The sockets of the pools: bound here or passed by the service manager. */
#ifndef SLIPWAY_WEB_LISTEN_H
#define SLIPWAY_WEB_LISTEN_H

#include <stdbool.h>

#include "core/settings.h"
#include "web/route.h"

struct listen_set {
	int fd[POOL__MAX];           /* -1 = no such pool */
	const char *path[POOL__MAX]; /* NULL = passed, not ours */
	int64_t workers[POOL__MAX];
};

/* Sets the configured number of workers of each pool. */
void listen_workers(struct listen_set *, const struct settings *);
/* Takes file descriptor 0 if it is listening (one pool then serves all
 * requests), else the descriptors of $LISTEN_FDS that $LISTEN_FDNAMES names api
 * and slow, else binds. ERR_CONFIG if another process serves a socket. */
MUSTCHECK const struct err *listen_open(const struct settings *,
    struct listen_set *out);
/* Stops listening on sockets bound here; queued connections stay queued. */
void listen_stop(const struct listen_set *);

#endif
