/* SPDX-License-Identifier: ISC */
/* Runs the git command line with every feature disabled that is not needed. */
#ifndef SLIPWAY_JOB_CHECKOUT_H
#define SLIPWAY_JOB_CHECKOUT_H

#include "job/job.h"

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
/* The following handle files that steps left, each by git_call: */
/* Removes the files at the paths of submodules in a list from git ls-tree -z. */
MUSTCHECK const struct err *workspace_links_remove(struct git *g,
    struct buf *list);
/* Removes everything except files, directories and links: git would block on a
 * FIFO. */
MUSTCHECK const struct err *workspace_specials_remove(struct git *g);
/* Removes everything except the entry of that name. */
MUSTCHECK const struct err *workspace_empty(struct git *g, const char *keep);
/* Removes temporary files that git left among its objects and the objects of Git
 * LFS, or the clone. */
MUSTCHECK const struct err *workspace_rest_remove(struct git *g, bool clone);
enum checkout_format { FORMAT_SHA1, FORMAT_SHA256 };
/* How to rebuild a clone. */
struct rebuild {
	struct arena *a;
	const char *url; /* of the repository */
	enum checkout_format format;
	bool has_index; /* the old index is to be used */
	bool has_tags;  /* the old tags are */
	bool has_lfs;   /* the old objects of Git LFS are */
};
/* Creates a new .git around the existing objects.  ERR_NOTFOUND if there are
 * none: then the clone is empty, in that format. */
MUSTCHECK const struct err *checkout_rebuild(int workspace,
    const struct rebuild *);
enum workspace_how {
	WORKSPACE_SAME,    /* nothing has changed since `was` */
	WORKSPACE_INDEX,   /* rebuilt, with the old index */
	WORKSPACE_REBUILT, /* rebuilt, with the old objects */
	WORKSPACE_FOREIGN, /* new, because objects have changed */
	WORKSPACE_NONE,    /* new */
	WORKSPACE_UNKNOWN, /* the comparison did not complete */
};
/* Compares the workspace with its state after the last job.  If anything
 * differs, or `accept` is false, rebuilds the clone; removes it first if its
 * objects have changed.  A cancel ends it only after the grace period for
 * cleanup. */
MUSTCHECK const struct err *workspace_prepare(struct git *g,
    const struct clone_state *was, bool accept, enum workspace_how *how);
/* Rebuilds the clone from nothing but its objects. */
MUSTCHECK const struct err *workspace_rebuild(struct git *g,
    enum checkout_format format);
/* Looks at the workspace, within its own time limit.  If that fails, all
 * members are unknown. */
void workspace_look(struct job *, struct seen *out);
/* The state of the files in a workspace. */
enum files_before {
	FILES_COMMITTED, /* those of a commit, with its index, and no others */
	FILES_UNKNOWN,
	FILES_FOREIGN, /* nothing in it belongs to this clone */
};
/* Brings the files to a commit, and the submodules if they are wanted. */
MUSTCHECK const struct err *files_checkout(struct git *g, const char *hash,
    enum files_before before);
/* The last part of that: writes the files that differ from a commit. */
MUSTCHECK const struct err *files_write(struct git *g, const char *hash);
/* Settings and variables with which git fetches the files of Git LFS. */
#define LFS_SETTINGS 4
extern const char *const lfs_settings[LFS_SETTINGS];
#define LFS_ENVIRONMENT 2
void lfs_environment(const struct job *, const char *out[LFS_ENVIRONMENT]);
/* Removes what git-lfs left in the home. */
void lfs_close(void);
/* How git-lfs begins the line that says why it did not fetch a file. */
#define LFS_FAILURE "Error downloading object: "
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
static inline bool
git_done(const struct git *g)
{
	return run_succeeded(&g->end);
}

#endif
