/* SPDX-License-Identifier: ISC */
/* The git command line, with everything closed that is not needed. */
#ifndef SLIPWAY_JOB_CHECKOUT_H
#define SLIPWAY_JOB_CHECKOUT_H

#include "job/job.h"

#define GIT_ARGS 96

/* Of one checkout. */
struct git {
	struct job *job;
	int64_t deadline;       /* monotonic ms */
	int credential;         /* memfd, -1 = none */
	const char *const *env; /* of every git */
	const char *argv[GIT_ARGS];
	size_t nargs;       /* of them for every git */
	unsigned flags;     /* enum run_flag */
	struct run_end end; /* of the last one */
};

/* The first git of a PATH, in the arena; NULL if there is none. */
const char *git_program(struct arena *, const char *path);
/* Writes what it needs into the home; closing removes that. */
MUSTCHECK const struct err *git_open(struct job *, int64_t deadline,
    struct git *out);
void git_close(struct git *);
/* Runs git with these arguments, which end with NULL; see g->end. Standard
 * output goes into `capture`, or the log if that is NULL. */
MUSTCHECK const struct err *git_run(struct git *g, struct buf *capture,
    const char *const *args);
/* Records of the newest commits of a ref, `max` at most; "" if git cannot tell.
 * In the arena of the job. */
MUSTCHECK const struct err *git_commits(struct git *g, const char *ref,
    int64_t max, const char **out);
static inline bool
git_done(const struct git *g)
{
	return run_succeeded(&g->end);
}

#endif
