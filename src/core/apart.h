/* SPDX-License-Identifier: ISC */
/*
 * What a job does not share with the host: mounts (mount_namespaces(7)), so
 * that it has a /tmp, /var/tmp and /dev/shm of its own, and System V and POSIX
 * IPC (ipc_namespaces(7)).  All of it ends with the last process of the job.
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

/* As root, before the drop: leaves the host's mounts, and its IPC if that is
 * asked for.  Directories that were opened before are outside of the new
 * namespace: see passwd_enter. */
MUSTCHECK const struct err *apart_enter(unsigned what);
/* After that: gives this process directories in `home`, a descriptor, as /tmp
 * and /var/tmp.  They belong to that user. */
MUSTCHECK const struct err *apart_tmp(int home, uid_t uid, gid_t gid);
/* What of that this process may do; makes a child to find out. */
unsigned apart_possible(void);
/* Whether the path is below a directory that apart_tmp hides. */
bool apart_hides(const char *path);

#endif
