/* SPDX-License-Identifier: ISC */
/* Runs children of a job, with everything that they start. */
#ifndef SLIPWAY_JOB_RUN_H
#define SLIPWAY_JOB_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "core/buf.h"

struct arena;
struct job;

enum run_flag {
	RUN_CANCEL_ENDS_IT = 1 << 0,
	RUN_CANCEL_LIMITS_IT = 1 << 1, /* to the grace period for cleanup */
};

typedef const struct err *run_call(void *arg);

/* A child and everything that it starts. */
struct run {
	const char *const *argv;
	/* function that the child runs instead of a program; it has the
	 * directories */
	run_call *call;
	void *arg;
	const char *const *envp;
	int64_t deadline;    /* monotonic ms, 0 = none */
	int keep_fd;         /* kept open in the child, -1 = none */
	int directory;       /* to run in, 0 = the workspace */
	int input;           /* its standard input, 0 = none */
	unsigned flags;      /* enum run_flag */
	struct buf *capture; /* receives standard output instead of the log */
};

enum run_how { RUN_EXITED, RUN_TIMED_OUT, RUN_CANCELED, RUN_NOT_STARTED };

struct run_end {
	enum run_how how;
	int status; /* from wait(2) */
	int error;  /* errno, with RUN_NOT_STARTED */
};

/* Reads pending requests. */
void job_control(struct job *);
/* Returns when no process of it is left and all its output is in the log. */
MUSTCHECK const struct err *job_run(struct job *, const struct run *,
    struct run_end *out);
/* The same for a function, for all access to files that steps can have created:
 * they may block, and there may be too many to handle in time.  `out` gets its
 * standard output.  Returns its error if it completed; else `end` says why it
 * did not.  NULL with `how` RUN_EXITED is success. */
MUSTCHECK const struct err *job_call(struct job *, const struct run *,
    struct run_end *end, const char **out);
/* The same within so many milliseconds, even if the job is canceled;
 * ERR_UNAVAILABLE if it does not end in time. */
MUSTCHECK const struct err *job_call_within(struct job *, int64_t ms,
    run_call *, void *arg, const char **out);
static inline bool
run_succeeded(const struct run_end *end)
{
	return end->how == RUN_EXITED && end->status == 0;
}
/* Describes the end: "timed out", "was killed by signal 9 (Killed)"…, in the
 * arena. */
const char *run_text(struct arena *, const struct run_end *);

#endif
