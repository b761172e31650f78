/* SPDX-License-Identifier: ISC */
/*
 * Child processes of the dispatcher do the slow work, so that the loop never
 * waits.
 */
#ifndef SLIPWAY_DISPATCH_CHILD_H
#define SLIPWAY_DISPATCH_CHILD_H

#include <sys/types.h>

#include "access/access.h"

struct dispatch;

/* A child that has no descriptor of the dispatcher but `keep`, as descriptor 3
 * (-1 = none); 0 in the child, -1 with errno. */
pid_t child_fork(int keep);
/* In a child: its own connection to the database, and the service's keys if they
 * can be read.  They stay until the child ends. */
MUSTCHECK const struct err *child_open(const struct dispatch *,
    struct access *out);
/* The same with a client for the Git server. */
MUSTCHECK const struct err *child_connect(const struct dispatch *,
    struct access *out);

#endif
