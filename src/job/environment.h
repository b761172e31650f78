/* SPDX-License-Identifier: ISC */
/* The variables that steps see. */
#ifndef SLIPWAY_JOB_ENVIRONMENT_H
#define SLIPWAY_JOB_ENVIRONMENT_H

struct job;

/* The variables of the steps, "NAME=value", ending with NULL, in the arena. */
const char *const *job_environment(const struct job *, const char *branch,
    const char *hash);

#endif
