/* SPDX-License-Identifier: ISC */
/*
 * The deadline of a worker's present task.  SIGALRM enforces it, so no single
 * call needs a timeout.
 *
 * Deadlines follow each other closely and nearly all are met.  So the timer is
 * not set for each of them: it may fire early, and then its handler sets it for
 * the deadline that is current by that time, if there is one.  That takes about
 * one setitimer(2) a second instead of six a request.
 */
#ifndef SLIPWAY_WEB_DEADLINE_H
#define SLIPWAY_WEB_DEADLINE_H

#include <stdint.h>

#include "core/err.h"

/* A process that hangs may be past its deadline for so long; then the kernel kills
 * it. */
#define DEADLINE_HUNG_MS 2000
/* Exit status of a worker that ended at the deadline of its request. */
#define DEADLINE_MISSED 124

/* Installs the handler and the timer, once per process. */
MUSTCHECK const struct err *deadline_init(void);
/* After `ms`, shuts down the connection `fd`, which ends reads and writes. */
void deadline_close(int fd, int64_t ms);
/* After `ms`, calls `last` in the signal handler and exits with `status`.  A
 * process that does not, because it is stopped for example, is killed
 * DEADLINE_HUNG_MS later. */
void deadline_exit(int64_t ms, void (*last)(void), int status);
/* Ends the current deadline. */
void deadline_clear(void);

#endif
