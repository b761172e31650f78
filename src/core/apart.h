/* SPDX-License-Identifier: ISC */
/*
 * What a job does not share with the host: mounts (mount_namespaces(7)), so
 * that it has its own /tmp, /var/tmp and /dev/shm, and System V and POSIX IPC
 * (ipc_namespaces(7)).  The kernel removes all of it when the job's last
 * process ends.
 */
#ifndef SLIPWAY_CORE_APART_H
#define SLIPWAY_CORE_APART_H

#include <stdbool.h>

#include "core/err.h"

enum apart {
	APART_MOUNTS = 1 << 0,
	APART_IPC = 1 << 1, /* and /dev/shm; needs the mounts */
	APART_TMP = 1 << 2, /* and /tmp; needs the mounts */
};

/* Leaves the host's mount namespace, and its IPC namespace if `what` includes
 * APART_IPC.  Needs root; call it before dropping privileges.  Directories
 * opened before are outside the new namespace: see passwd_enter. */
MUSTCHECK const struct err *apart_enter(unsigned what);
/* Call after apart_enter with these flags: a directory for temporary files that
 * no process of another job sees, either in memory or `home`. */
const char *apart_scratch(unsigned what, const char *home);
/* Call after apart_enter: mounts directories below `home`, a descriptor, on
 * /tmp and /var/tmp.  They belong to the given user. */
MUSTCHECK const struct err *apart_tmp(int home, uid_t uid, gid_t gid);
/* Call after apart_enter: hides a directory behind an empty one that nobody can
 * write to. */
MUSTCHECK const struct err *apart_hide(const char *path);
/* Returns the flags that this process has the rights for; forks a child to find
 * out. */
unsigned apart_possible(void);
/* Removes these directories if they are empty. */
void apart_tmp_remove(int home);
/* Whether a job that is apart in that way has a directory of its own there. */
bool apart_has_own(unsigned what, const char *path);
/* Whether the path is below a directory that apart_tmp hides. */
bool apart_hides(const char *path);

#endif
