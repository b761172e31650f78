/* SPDX-License-Identifier: ISC */
/* What the servers share when they start: a listening unix socket, and an
 * account to run as. */
#ifndef SLIPWAY_CORE_SERVE_H
#define SLIPWAY_CORE_SERVE_H

#include <sys/types.h>

#include "core/err.h"

/* Binds a stream socket and listens, in place of one that no process serves any
 * more.  `mode` applies to `group` (NULL = that of the process). ERR_CONFIG if
 * another process serves the socket. */
MUSTCHECK const struct err *serve_listen(const char *path, mode_t mode,
    const char *group, int *out);
/* If the process runs as root, switches to that account for good, unless it is
 * root. ERR_CONFIG if it is NULL or unknown. */
MUSTCHECK const struct err *serve_as(const char *user);

#endif
