/* SPDX-License-Identifier: ISC */
/*
 * A name for accounts that have none.  Projects run under user ids that no
 * passwd file lists; ssh(1), and any program that looks up its own user,
 * refuses to run then.  Such a job sees /etc/passwd with one more line, in its
 * own mount namespace (mount_namespaces(7)); the host's file is unchanged.
 */
#ifndef SLIPWAY_CORE_PASSWD_H
#define SLIPWAY_CORE_PASSWD_H

#include <stdbool.h>

#include "core/proc.h"

/* Call as root, after apart_enter and before dropping privileges.  Creates a
 * file in `scratch`, to which no other account can write, for a moment.  An
 * error means that the job runs without a name. */
MUSTCHECK const struct err *passwd_give(const struct proc_account *,
    const char *home, const char *scratch);
/* Reopens the directory by its path, as the same descriptor; ERR_INTERNAL if
 * the path leads to another directory. */
MUSTCHECK const struct err *passwd_enter(int fd, const char *path);

#endif
