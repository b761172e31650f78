/* SPDX-License-Identifier: ISC */
/* The file that a step runs. */
#ifndef SLIPWAY_JOB_SCRIPT_H
#define SLIPWAY_JOB_SCRIPT_H

#include "core/err.h"

struct job;

/* In the private home. */
#define JOB_SCRIPT "slipway-step"
/* Writes the script of a step there. */
MUSTCHECK const struct err *job_script(struct job *, size_t i);

#endif
