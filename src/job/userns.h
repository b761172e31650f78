/* SPDX-License-Identifier: ISC */
/* Whether steps may create user namespaces: in one, an account without rights
 * reaches most of the kernel that is otherwise root's alone. */
#ifndef SLIPWAY_JOB_USERNS_H
#define SLIPWAY_JOB_USERNS_H

#include <stdbool.h>

/* From now on neither this process nor any that descends from it creates a user
 * namespace: the kernel refuses (EPERM).  Needs no_new_privs.  Allocates
 * nothing; false with errno.  True without effect on processors other than
 * x86-64, arm64 and riscv64. */
bool userns_forbid(void);

#endif
