/* SPDX-License-Identifier: ISC */
/* Directories that deleted projects left on this host. */
#ifndef SLIPWAY_DISPATCH_WIPE_H
#define SLIPWAY_DISPATCH_WIPE_H

#include "spool/wire.h"
#include "store/projectdir.h"

struct dispatch;

/* Has the monitor remove the directory, unless another existing project, `heir`
 * aside, has something below it here. */
MUSTCHECK const struct err *wipe_ask(const struct dispatch *,
    const struct projectdir *gone, enum wire_wipe, int64_t heir);
/* Has those that overlap with the project's directory moved out of its way. */
MUSTCHECK const struct err *wipe_around(const struct dispatch *,
    int64_t project);

#endif
