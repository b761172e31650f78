/* SPDX-License-Identifier: ISC */
/*
 * System call filters for steps (seccomp(2)), which apply to this process and
 * all its descendants.  They allocate nothing, need no_new_privs, and return
 * false with errno.  They have an effect only on x86-64, arm64 and riscv64.
 */
#ifndef SLIPWAY_JOB_FILTER_H
#define SLIPWAY_JOB_FILTER_H

#include <sys/types.h>

#include <stdbool.h>

/* Forbids new user namespaces: in one, an unprivileged account reaches most of
 * the kernel interfaces that are otherwise reserved for root. */
bool filter_namespaces(void);
/* Forbids changing who may use a key or keyring, as the keys that a step leaves
 * in the keyrings of its user could not be removed then (keyctl_setperm(3)). */
bool filter_keys(void);
/* Protects the scheduling of the job. sched_setscheduler(2) and its relatives
 * compare only the effective user, which the job shares with its steps, so a
 * step could otherwise starve the job.  `job` is its process, `group` the
 * process group, `watch` the real user. */
bool filter_scheduling(pid_t job, pid_t group, uid_t watch);

#endif
