/* SPDX-License-Identifier: ISC */
/* The sockets of the pools: bound here, or handed in by who started us. */
#ifndef SLIPWAY_API_LISTEN_H
#define SLIPWAY_API_LISTEN_H

#include <stdbool.h>

#include "api/route.h"
#include "core/settings.h"

struct listen_set {
	int fd[POOL__MAX];           /* -1 = there is no such pool */
	const char *path[POOL__MAX]; /* NULL = handed in, not ours */
	int64_t workers[POOL__MAX];
};

/* The configured number of workers of each pool. */
void listen_workers(struct listen_set *, const struct settings *);
/* Takes file descriptor 0 if it listens (then one pool serves all), else
 * $LISTEN_FDS named api, slow, log by $LISTEN_FDNAMES, else binds.
 * ERR_CONFIG if another process serves a socket. */
MUSTCHECK const struct err *listen_open(const struct settings *,
    struct listen_set *out);
/* No further connection is taken on sockets of ours; those that wait stay. */
void listen_stop(const struct listen_set *);

#endif
