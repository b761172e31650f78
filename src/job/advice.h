/* SPDX-License-Identifier: ISC */
/* What to do about a failure of git. */
#ifndef SLIPWAY_JOB_ADVICE_H
#define SLIPWAY_JOB_ADVICE_H

struct job;

/* What to do about a failure of git, in the arena; NULL = nothing is known. */
const char *checkout_advice(const struct job *, const char *detail);

#endif
