/* SPDX-License-Identifier: ISC */
/*
 * Control groups, where the host lets us make them: one for each job, below
 * the one that the monitor was started in.  They limit memory and processes
 * and end all that is in them at once; without them resource limits and
 * sweeps have to do.
 */
#ifndef SLIPWAY_MONITOR_CGROUP_H
#define SLIPWAY_MONITOR_CGROUP_H

#include <stdbool.h>
#include <stdint.h>

#include "core/buf.h"

#define CGROUP_ID 64     /* of a job, with its NUL */
#define CGROUP_PREFIX 64 /* of a runner, with its NUL */

/* Looks what there is. `prefix` tells the groups of this runner from those of
 * another. */
void cgroup_init(const char *prefix);
/* What was found, in words, into `out`. */
void cgroup_describe(struct buf *out);
/* Makes the groups of a job with its limits (0 = none). */
MUSTCHECK const struct err *cgroup_make(const char *id, int64_t memory,
    int64_t pids);
/* Moves the calling process there; false with errno if that fails. */
bool cgroup_enter(const char *id);
/* Ends all that is in them; whether something still was. */
bool cgroup_kill(const char *id);
/* Once they are empty. */
void cgroup_remove(const char *id);
/* Whether anything can be found and ended by its group. */
bool cgroup_can_kill(void);
/* Gives back what a manager needs to start us again beside living jobs. */
void cgroup_release(void);

#endif
