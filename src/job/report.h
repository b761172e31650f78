/* SPDX-License-Identifier: ISC */
/* The result of a job. */
#ifndef SLIPWAY_JOB_REPORT_H
#define SLIPWAY_JOB_REPORT_H

#include "core/state.h"
#include "spool/event.h"

struct job;

/* Appends an event to the result; one that cannot be written is tried again with
 * the next. */
void job_report(struct job *, const struct job_event *);
/* Appends the last one, after the log has been synced. */
MUSTCHECK const struct err *job_report_end(struct job *, enum reason,
    const char *detail);

#endif
