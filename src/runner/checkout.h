/* SPDX-License-Identifier: ISC */
/* The git command line, with everything closed that is not needed. */
#ifndef SLIPWAY_RUNNER_CHECKOUT_H
#define SLIPWAY_RUNNER_CHECKOUT_H

#include "runner/job.h"

/* Of one checkout. */
struct git {
	struct job *job;
	int64_t deadline;       /* monotonic ms */
	int credential;         /* memfd, -1 = none */
	const char *const *env; /* of every git */
	unsigned flags;         /* enum run_flag */
	struct run_end end;     /* of the last one */
};

/* Closes the credential, too. */
MUSTCHECK const struct err *git_open(struct job *, int64_t deadline,
    struct git *out);
void git_close(struct git *);
/* Runs git with these arguments, which end with NULL; see g->end. Standard
 * output goes into `capture`, or the log if that is NULL. */
MUSTCHECK const struct err *git_run(struct git *g, struct buf *capture,
    const char *const *args);
static inline bool
git_done(const struct git *g)
{
	return run_succeeded(&g->end);
}

#endif
