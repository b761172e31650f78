/* SPDX-License-Identifier: ISC */
/*
 * A name for accounts that have none.  Projects run under user ids of a range
 * that no passwd file lists; ssh(1), and whatever else looks its own user up,
 * refuses to run then.  Such a job sees /etc/passwd with one line more, in a
 * mount namespace of its own (mount_namespaces(7)); the host's file is not
 * touched.
 */
#ifndef SLIPWAY_CORE_PASSWD_H
#define SLIPWAY_CORE_PASSWD_H

#include <stdbool.h>

#include "core/proc.h"

/* As root, after apart_enter, before the drop. In `home`, the job's own, a file
 * is made for a moment. An error means that the job runs without a name. */
MUSTCHECK const struct err *passwd_give(const struct proc_account *,
    const char *home);
/* Opens the directory anew as the same descriptor; ERR_INTERNAL if the path
 * leads to another. */
MUSTCHECK const struct err *passwd_enter(int fd, const char *path);

#endif
