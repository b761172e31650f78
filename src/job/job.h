/* SPDX-License-Identifier: ISC */
/*
 * One deployment, from its description to its result.  The process runs as the
 * account of the steps and is their subreaper, so that everything they start
 * remains its descendant.
 */
#ifndef SLIPWAY_JOB_JOB_H
#define SLIPWAY_JOB_JOB_H

#include <stdbool.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/buf.h"
#include "core/proc.h"
#include "core/state.h"
#include "job/mask.h"
#include "job/seen.h"
#include "job/userinfo.h"
#include "spool/description.h"
#include "spool/event.h"
#include "spool/spool.h"
#include "spool/wire.h"

/* Descriptor of enum wire_fd. */
#define JOB_FD(which) (3 + (which))

/* What the monitor passed on the command line. */
struct job_place {
	const char *id;      /* DEPLOYMENT.EPOCH */
	const char *program; /* the path of slipway-job */
	const char *home;
	const char *workspace;
	const char *cache;       /* NULL = none */
	int64_t cache_max;       /* bytes */
	struct proc_account who; /* uid 0 = do not switch */
	uid_t watch;             /* real user while steps run; 0 = that of
				  * `who` */
	bool nameless;           /* no passwd file lists the account */
	unsigned apart;          /* enum apart */
	bool hides;              /* steps do not see the workspace */
	bool user_namespaces;    /* steps may create user namespaces */
	int64_t open_files;      /* 0 = inherited, like the next two */
	int64_t file_size;
	int64_t processes;
};

#define JOB_LINE 1024

struct job_log {
	struct mask *mask;
	struct userinfo urls;
	bool hides_users; /* of URLs: the output is that of git */
	struct buf out;
	int fd;
	int64_t size;
	int64_t max;
	int64_t cut;     /* bytes that did not fit */
	int64_t held_at; /* when the mask began to hold something back, 0 =
			  * nothing is held */
	bool full;
	int lost;            /* errno of a failed write, 0 = none */
	bool at_line;        /* the last byte of the input was a newline */
	bool file_at_line;   /* the last byte in the file was one */
	char last[JOB_LINE]; /* the most informative line, masked */
	/* the URL of a submodule that git could not clone; "?" = it could not
	 * fetch one */
	char clone_of[JOB_LINE];
	int disk;            /* errno of the disk that git named, 0 = none */
	bool settled;        /* later lines add nothing */
	char line[JOB_LINE]; /* the current, incomplete line */
	size_t line_len;
};

void job_log_open(struct job_log *, int fd, struct mask *, int64_t max);
/* Logs output of a child. */
void job_log_feed(struct job_log *, const char *data, size_t len);
/* Logs a line of the job itself, after all output so far. */
void job_log_say(struct job_log *, const char *fmt, ...) PRINTFLIKE(2, 3);
/* Writes everything held back, now. */
void job_log_finish(struct job_log *);
/* Writes output that was held back long enough; returns milliseconds until more
 * is due, -1 if nothing is held back. */
int job_log_tick(struct job_log *);
/* Forgets the most informative line. */
void job_log_forget(struct job_log *);
/* Writes the line that reports how much was cut; nothing is written after it. */
void job_log_close(struct job_log *);

struct job {
	struct arena *a;
	struct job_description spec;
	struct job_place place;
	struct job_log log;
	int result_fd;
	int signal_fd;
	int64_t deadline; /* of the pipeline, monotonic ms, 0 = none */
	char control[64]; /* an incomplete line */
	size_t control_len;
	int64_t cancel_at;         /* when the cancel was requested, monotonic
				    * ms, 0 = it was not */
	const struct err *unnamed; /* why the account has no name */
	const struct err *shared;  /* why something is shared with the host */
};

/* Appends an event to the result; one that cannot be written is tried again with
 * the next. */
void job_report(struct job *, const struct job_event *);
/* Appends the last one, after the log has been synced. */
MUSTCHECK const struct err *job_report_end(struct job *, enum reason,
    const char *detail);

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

/* Step i of its description. */
static inline const struct job_step *
job_step_at(const struct job *job, size_t i)
{
	return (const struct job_step *)job->spec.steps.items + i;
}

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

struct checkout {
	const char *branch; /* "" for a tag, or if HEAD is not on a branch */
	bool elsewhere;     /* the branch or tag does not have the commit */
	const char *hash;
	const char *message;
	/* state of the workspace if the checkout failed; no hash = at no
	 * commit */
	struct job_event stayed;
	const char *commits; /* records of the branch's latest commits, NULL =
			      * none */
	const char *state;   /* of the clone, as text, NULL = unknown */
	struct seen seen;    /* the workspace before the first step, if it
			      * matched the commit */
};

enum checkout_how {
	CHECKOUT_DONE,
	CHECKOUT_FAILED,  /* detail says why */
	CHECKOUT_AWAY,    /* the same, of a server that cannot be reached now */
	CHECKOUT_NO_ROOM, /* the same, of the disk */
	CHECKOUT_TIMED_OUT,
	CHECKOUT_CANCELED,
	CHECKOUT_SUPERSEDED, /* detail names the newer commit; nothing has
			      * changed */
};

/* Compares the commit of a push with the head of its branch at the server, then
 * erases the credential. Uses nothing of an earlier checkout. */
MUSTCHECK const struct err *job_head(struct job *, enum checkout_how *,
    const char **detail);
/* What to do about a failure of git, in the arena; NULL = nothing is known. */
const char *checkout_advice(const struct job *, const char *detail);
/* Whether the disk is to blame for a failed checkout, which may have ended with
 * an error; if so, why and what to do, as sentences in the arena. */
bool room_fault(struct job *, const struct err *, const char **detail);
/* Brings the workspace to the requested commit, then erases the credential. */
MUSTCHECK const struct err *job_checkout(struct job *, struct checkout *out,
    enum checkout_how *how, const char **detail);
/* The state of the workspace at present, which had been `seen` before the first
 * step. */
MUSTCHECK const struct err *job_workspace(struct job *, const struct seen *seen,
    struct job_event *out);

/* In the private home. */
#define JOB_SCRIPT "slipway-step"
/* Writes the script of a step there. */
MUSTCHECK const struct err *job_script(struct job *, size_t i);
/* The variables of the steps, "NAME=value", ending with NULL, in the arena. */
const char *const *job_environment(const struct job *, const char *branch,
    const char *hash);

/* Measures the project's cache, and marks it as one to empty if it is too
 * large. */
void job_cache(struct job *);

/* Answers git's question for a user or password from an inherited
 * descriptor. */
int job_askpass(const char *question, const char *fd);

/* Runs the checkout and the steps and writes the result. */
MUSTCHECK const struct err *job_steps(struct job *);
/* Removes from the home what was made for the steps. What the steps left there
 * stays, for the monitor. */
void job_steps_clear(void);

#endif
