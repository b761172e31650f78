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
/* For a git that asks no server, after steps that may have written anything
 * into the home: nothing of that is used, nothing is to be closed. */
MUSTCHECK const struct err *git_open_bare(struct job *, int64_t deadline,
    struct git *out);
void git_close(struct git *);
/* Runs git with these arguments, which end with NULL; see g->end. Standard
 * output goes into `capture`, or the log if that is NULL. */
MUSTCHECK const struct err *git_run(struct git *g, struct buf *capture,
    const char *const *args);
/* job_call within the deadline, see g->end. */
MUSTCHECK const struct err *git_call(struct git *g, run_call *, void *arg,
    const char **out);
/* What steps have left, each as git_call: */
/* Removes what stands where a list of git ls-tree -z has submodules. */
MUSTCHECK const struct err *workspace_links_remove(struct git *g,
    struct buf *list);
/* What is neither a file, a directory nor a link: git would wait at a FIFO. */
MUSTCHECK const struct err *workspace_specials_remove(struct git *g);
/* All but the entry of that name. */
MUSTCHECK const struct err *workspace_empty(struct git *g, const char *keep);
/* A clone whose objects are not as the last checkout left them. */
MUSTCHECK const struct err *workspace_foreign_remove(struct git *g,
    bool *removed);
/* checkout_rebuild. */
MUSTCHECK const struct err *workspace_rebuild(struct git *g,
    enum checkout_format format);
/* When git's objects last changed; -1 if that cannot be seen in time. */
int64_t workspace_objects(struct job *);
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
