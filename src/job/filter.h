/* SPDX-License-Identifier: ISC */
/*
 * Filters on the system calls of steps (seccomp(2)), for this process and all
 * that descend from it.  They allocate nothing, need no_new_privs, and return
 * false with errno.  On processors other than x86-64, arm64 and riscv64 they
 * have no effect.
 */
#ifndef SLIPWAY_JOB_FILTER_H
#define SLIPWAY_JOB_FILTER_H

#include <sys/types.h>

#include <stdbool.h>

/* No new user namespaces: in one, an account without rights reaches most of the
 * kernel that is otherwise root's alone. */
bool filter_namespaces(void);
/* The scheduling of the job stays as it is.  sched_setscheduler(2) and the like
 * compare the effective user alone, which the job shares with its steps, so one
 * of them could leave it hardly any time of the processor.  `job` is its
 * process, `group` the process group, `watch` the real user. */
bool filter_scheduling(pid_t job, pid_t group, uid_t watch);

#endif
