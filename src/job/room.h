/* SPDX-License-Identifier: ISC */
/* Room on the disk. */
#ifndef SLIPWAY_JOB_ROOM_H
#define SLIPWAY_JOB_ROOM_H

#include <stdbool.h>

#include "core/err.h"

struct job;

/* Whether the disk is to blame for a failed checkout, which may have ended with
 * an error; if so, why and what to do, as sentences in the arena. */
bool room_fault(struct job *, const struct err *, const char **detail);

#endif
