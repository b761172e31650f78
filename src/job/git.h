/* SPDX-License-Identifier: ISC */
/* Runs the git command line with every feature disabled that is not needed. */
#ifndef SLIPWAY_JOB_GIT_H
#define SLIPWAY_JOB_GIT_H

#include "job/run.h"

#define GIT_ARGS 160

/* State of one checkout. */
struct git {
	struct job *job;
	int64_t deadline;       /* monotonic ms */
	int credential;         /* memfd, -1 = none */
	const char *const *env; /* of every git command */
	const char *argv[GIT_ARGS];
	size_t nargs;       /* number of arguments common to all commands */
	unsigned flags;     /* enum run_flag */
	bool has_lfs;       /* it fetches the files of Git LFS */
	int input;          /* standard input of the next command, 0 = none */
	struct run_end end; /* of the last command */
};

/* The first program of that name in a PATH, in the arena; NULL if there is
 * none. */
const char *program_find(struct arena *, const char *path, const char *name);
/* Writes the files that git needs into the home; closing removes them. */
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
/* The same, without the key, and with the credential only for the addresses that
 * are lent: from elsewhere, it reads what is public. */
MUSTCHECK const struct err *git_run_lent(struct git *g,
    const char *const *args);
/* Like job_call, within the deadline; the result is in g->end. */
MUSTCHECK const struct err *git_call(struct git *g, run_call *, void *arg,
    const char **out);
static inline bool
git_done(const struct git *g)
{
	return run_succeeded(&g->end);
}

/* Answers git's question for a user or password from an inherited
 * descriptor. */
int job_askpass(const char *question, const char *fd);

/* A list of the newest commits of a ref. */
struct git_log {
	const char *ref;
	int64_t max;
	const char *hash;    /* a commit whose message is required */
	const char *records; /* result; "" if git fails */
	const char *message; /* result; NULL if the list does not have `hash` */
};
/* Texts live in the job's arena. */
MUSTCHECK const struct err *git_commits(struct git *g, struct git_log *log);
/* The message of a commit, "" if git fails. */
MUSTCHECK const struct err *git_message(struct git *g, const char *hash,
    const char **out);

#endif
