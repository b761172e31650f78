/* SPDX-License-Identifier: ISC */
/*
 * Control groups, if the host lets us create them: one for each job, below the
 * group that the monitor was started in.  They limit memory and processes and
 * kill everything in them at once.  Without them, resource limits and sweeps
 * must suffice.
 */
#ifndef SLIPWAY_MONITOR_CGROUP_H
#define SLIPWAY_MONITOR_CGROUP_H

#include <sys/types.h>

#include <stdbool.h>
#include <stdint.h>

#include "core/buf.h"

#define CGROUP_ID 64     /* of a job, with its NUL */
#define CGROUP_PREFIX 64 /* of a runner, with its NUL */

/* Detects what is available.  `prefix` distinguishes the groups of this runner
 * from those of another. */
void cgroup_init(const char *prefix);
/* Appends a description of what was detected to `out`. */
void cgroup_describe(struct buf *out);
/* Creates the groups of a job with its limits (0 = none). */
MUSTCHECK const struct err *cgroup_make(const char *id, int64_t memory,
    int64_t pids);
/* Like fork(2), but the child is created in one of them if the kernel can do
 * that, which saves it a wait. */
pid_t cgroup_fork(const char *id);
/* Moves the calling process, which has one thread, into all others; false with
 * errno on failure. */
bool cgroup_enter(const char *id);
/* Kills everything in them; returns whether anything was still there. */
bool cgroup_kill(const char *id);
/* Removes them once they are empty. */
void cgroup_remove(const char *id);
/* Removes groups of jobs that no longer live, which the kernel kept while a
 * process was still in them. It keeps those that are not empty. */
void cgroup_remove_old(bool (*lives)(const void *context, const char *id),
    const void *context);
/* Whether groups can be used to find and kill processes. */
bool cgroup_can_kill(void);
/* Gives up the controllers, so that a service manager can restart us while jobs
 * run. */
void cgroup_release(void);

#endif
