/* SPDX-License-Identifier: ISC */
/* The cache of a project. */
#ifndef SLIPWAY_JOB_CACHE_H
#define SLIPWAY_JOB_CACHE_H

struct job;

/* Measures the project's cache, and marks it as one to empty if it is too
 * large. */
void job_cache(struct job *);

#endif
