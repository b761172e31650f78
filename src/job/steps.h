/* SPDX-License-Identifier: ISC */
/* What a job does: the checkout, then the steps. */
#ifndef SLIPWAY_JOB_STEPS_H
#define SLIPWAY_JOB_STEPS_H

#include "core/err.h"

struct job;

/* Runs the checkout and the steps and writes the result. */
MUSTCHECK const struct err *job_steps(struct job *);
/* Removes from the home what was made for the steps. What the steps left there
 * stays, for the monitor. */
void job_steps_clear(void);

#endif
