/* SPDX-License-Identifier: ISC */
/*
 * The doorbell between whoever queues work and the one who does it: an empty
 * datagram on a unix socket.  It carries nothing, so that one lost or one too
 * many does no harm: the queue itself is looked at anyway.
 */
#ifndef SLIPWAY_CORE_WAKE_H
#define SLIPWAY_CORE_WAKE_H

#include <sys/types.h>

#include <stdbool.h>

#include "core/err.h"

/* Never waits; nobody there, or a full queue, is no error. */
void wake_send(const char *path);
/* Binds the socket, in the place of one that is left over, never of anything
 * else. `group` (NULL = the process's) may write to it by `mode`. */
MUSTCHECK const struct err *wake_open(const char *path, mode_t mode,
    const char *group, int *out);
/* Takes all that has come; whether there was anything. Never waits. */
bool wake_drain(int fd);

#endif
