/* SPDX-License-Identifier: ISC */
/* Runs the git command line with every feature disabled that is not needed. */
#ifndef SLIPWAY_JOB_CHECKOUT_H
#define SLIPWAY_JOB_CHECKOUT_H

#include "job/job.h"

#define GIT_ARGS 96

/* State of one checkout. */
struct git {
	struct job *job;
	int64_t deadline;       /* monotonic ms */
	int credential;         /* memfd, -1 = none */
	const char *const *env; /* of every git command */
	const char *argv[GIT_ARGS];
	size_t nargs;       /* number of arguments common to all commands */
	unsigned flags;     /* enum run_flag */
	struct run_end end; /* of the last command */
};

/* The first git in a PATH, in the arena; NULL if there is none. */
const char *git_program(struct arena *, const char *path);
/* Writes what git needs into the home; closing removes it. */
MUSTCHECK const struct err *git_open(struct job *, int64_t deadline,
    struct git *out);
/* For commands that contact no server, after steps that may have written
 * anything into the home: uses no file there, and needs no closing. */
MUSTCHECK const struct err *git_open_bare(struct job *, int64_t deadline,
    struct git *out);
void git_close(struct git *);
/* Runs git with these arguments, which end with NULL; the result is in g->end.
 * Standard output goes to `capture`, or to the log if that is NULL. */
MUSTCHECK const struct err *git_run(struct git *g, struct buf *capture,
    const char *const *args);
/* Like job_call, within the deadline; the result is in g->end. */
MUSTCHECK const struct err *git_call(struct git *g, run_call *, void *arg,
    const char **out);
/* The following handle what steps left, each by git_call: */
/* Removes what is at the paths of submodules in a list from git ls-tree -z. */
MUSTCHECK const struct err *workspace_links_remove(struct git *g,
    struct buf *list);
/* Removes everything except files, directories and links: git would block on a
 * FIFO. */
MUSTCHECK const struct err *workspace_specials_remove(struct git *g);
/* Removes everything except the entry of that name. */
MUSTCHECK const struct err *workspace_empty(struct git *g, const char *keep);
/* Removes a clone whose objects changed since the last checkout. */
MUSTCHECK const struct err *workspace_foreign_remove(struct git *g,
    bool *removed);
/* Calls checkout_rebuild. */
MUSTCHECK const struct err *workspace_rebuild(struct git *g,
    enum checkout_format format);
/* When git's objects last changed; -1 if that cannot be determined in time. */
int64_t workspace_objects(struct job *);
/* Returns records of the newest commits of a ref, at most `max`, in the job's
 * arena; "" if git fails. */
MUSTCHECK const struct err *git_commits(struct git *g, const char *ref,
    int64_t max, const char **out);
static inline bool
git_done(const struct git *g)
{
	return run_succeeded(&g->end);
}

#endif
