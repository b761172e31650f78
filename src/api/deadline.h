/* SPDX-License-Identifier: ISC */
/*
 * The one deadline of a worker: what it does at the moment must be done by
 * then.  A signal (SIGALRM) enforces it, so no call needs a timeout of its own.
 *
 * Deadlines follow each other closely and nearly all are met.  So the timer is
 * not set for each: it may ring early, finds a later deadline or none, and is
 * set again only then (setitimer(2), about once a second instead of six times
 * a request).
 */
#ifndef SLIPWAY_API_DEADLINE_H
#define SLIPWAY_API_DEADLINE_H

#include <stdint.h>

#include "core/err.h"

/* Once per process. */
MUSTCHECK const struct err *deadline_init(void);
/* After `ms` the connection `fd` is shut down, which ends reads and writes. */
void deadline_close(int fd, int64_t ms);
/* After `ms` the process calls `last`, which may do what a signal handler may,
 * and exits with `status`. */
void deadline_exit(int64_t ms, void (*last)(void), int status);
/* No deadline until the next is set. */
void deadline_clear(void);

#endif
