/* SPDX-License-Identifier: ISC */
/*
 * The doorbell between the process that queues work and the one that does it:
 * an empty datagram on a unix socket.  It carries no data, so a lost or extra
 * one does no harm: the reader polls the queue anyway.
 */
#ifndef SLIPWAY_CORE_WAKE_H
#define SLIPWAY_CORE_WAKE_H

#include <sys/types.h>

#include <stdbool.h>

#include "core/err.h"

/* Never blocks; no reader, or a full queue, is no error. */
void wake_send(const char *path);
/* Binds the socket, in place of a leftover socket but never of another kind of
 * file.  `mode` applies to `group` (NULL = the group of the process). */
MUSTCHECK const struct err *wake_open(const char *path, mode_t mode,
    const char *group, int *out);
/* Receives everything that has arrived; returns whether there was anything.
 * Never blocks. */
bool wake_drain(int fd);

#endif
