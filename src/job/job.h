/* SPDX-License-Identifier: ISC */
/*
 * One deployment, from its description to its result.  The process runs as
 * the account of the steps; it is their subreaper, so that everything they
 * start stays below it.
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
#include "spool/spool.h"
#include "spool/wire.h"

/* Descriptor of enum wire_fd. */
#define JOB_FD(which) (3 + (which))

enum job_when { WHEN_SUCCESS, WHEN_FAILURE, WHEN_ALWAYS };

struct job_step {
	const char *name;
	const char *script;
	size_t script_len;
	int64_t timeout; /* seconds, 0 = none */
	enum job_when when;
};

struct job_list {
	const char **items;
	size_t n;
};

/* What the dispatcher wrote. Absent texts are NULL. */
struct job_spec {
	int64_t deployment;
	int64_t epoch;
	int64_t project;
	const char *project_name;
	const char *pipeline_name;
	const char *repository;
	const char *branch;
	const char *commit;
	int64_t head_only; /* the commit is void once the branch has another */
	const char *credential;
	const char *note;
	const char *tls_ca;
	const char *ssh_key;
	const char *known_hosts;
	const char *objects;
	int64_t commits;
	struct job_list env;
	struct job_list secret;
	struct job_step *steps;
	size_t nsteps;
	int64_t timeout;
	int64_t checkout_timeout;
	int64_t grace;
	int64_t cancel_grace;
	int64_t log_max;
	const char *path;
	int64_t allow_http;
	int64_t allow_local;
	int64_t submodules;
};

/* ERR_INTERNAL names what is malformed or missing. */
MUSTCHECK const struct err *job_spec_read(struct arena *, int fd,
    struct job_spec *out);

/* What the monitor said on the command line. */
struct job_place {
	const char *id; /* DEPLOYMENT.EPOCH */
	const char *home;
	const char *workspace;
	struct proc_account who; /* uid 0 = stay who we are */
	uid_t watch;             /* ours while steps run; 0 = that of who */
	bool nameless;           /* no passwd file lists it */
	unsigned apart;          /* enum apart */
	bool user_namespaces;    /* steps may create such */
	int64_t open_files;      /* 0 = as it is, as the next two */
	int64_t file_size;
	int64_t processes;
};

struct job_log {
	struct mask *mask;
	struct buf out;
	int fd;
	int64_t size;
	int64_t max;
	int64_t cut;     /* bytes that did not fit */
	int64_t held_at; /* since when the mask keeps something back, 0 = it
			  * does not */
	bool full;
	int lost;          /* errno with which a write failed, 0 = none did */
	bool at_line;      /* the last byte of the stream was a newline */
	bool file_at_line; /* and that of what was written of it */
	char last[256];    /* what tells most of what was masked */
	bool settled;      /* nothing after it tells more */
	char line[256];    /* the one that is being collected */
	size_t line_len;
};

void job_log_open(struct job_log *, int fd, struct mask *, int64_t max);
/* Output of a child. */
void job_log_feed(struct job_log *, const char *data, size_t len);
/* A line of the job's own, after all that was fed. */
void job_log_say(struct job_log *, const char *fmt, ...) PRINTFLIKE(2, 3);
/* All that is kept back, now. */
void job_log_finish(struct job_log *);
/* Milliseconds until something kept back is due, -1 if nothing is; writes it
 * when it is. */
int job_log_tick(struct job_log *);
/* Forgets the line that tells most. */
void job_log_forget(struct job_log *);
/* The line that says what was cut; nothing is written after it. */
void job_log_close(struct job_log *);

struct job {
	struct arena *a;
	struct job_spec spec;
	struct job_place place;
	struct job_log log;
	int result_fd;
	int signal_fd;
	int64_t deadline; /* of the pipeline, monotonic ms, 0 = none */
	char control[64]; /* a line that is being read */
	size_t control_len;
	int64_t cancel_at;         /* asked for then, monotonic ms, 0 = not */
	const struct err *unnamed; /* why the account has no name */
	const struct err *shared;  /* why something is the host's */
};

/* Appends one record; what cannot be written is tried again with the next. */
void job_result(struct job *, const char *name, const char *fmt, ...)
    PRINTFLIKE(3, 4);
/* The last one, after the log is on disk. */
MUSTCHECK const struct err *job_result_end(struct job *, enum reason,
    const char *detail);

enum run_flag {
	RUN_CANCEL_ENDS_IT = 1 << 0,
	RUN_CANCEL_LIMITS_IT = 1 << 1, /* to the grace for cleanup */
};

typedef const struct err *run_call(void *arg);

/* A child and all it starts. */
struct run {
	const char *const *argv;
	/* instead of a program: what the child does; it has the directories */
	run_call *call;
	void *arg;
	const char *const *envp;
	int64_t deadline;    /* monotonic ms, 0 = none */
	int keep_fd;         /* stays open in the child, -1 = none */
	unsigned flags;      /* enum run_flag */
	struct buf *capture; /* instead of the log: standard output */
};

enum run_how { RUN_EXITED, RUN_TIMED_OUT, RUN_CANCELED, RUN_NOT_STARTED };

struct run_end {
	enum run_how how;
	int status; /* of wait(2) */
	int error;  /* errno, with RUN_NOT_STARTED */
};

/* Takes note of what was asked for meanwhile. */
void job_control(struct job *);
/* Returns when nothing of it is left and all its output is in the log. */
MUSTCHECK const struct err *job_run(struct job *, const struct run *,
    struct run_end *out);
/* The same for a call, for all that touches files which steps can have made:
 * they may block, and there may be more of them than there is time for.  What
 * it writes to standard output is in `out`.  Its error, if it ran to its end;
 * else `end` says why not.  NULL and `how` RUN_EXITED is success. */
MUSTCHECK const struct err *job_call(struct job *, const struct run *,
    struct run_end *end, const char **out);
/* The same in so many milliseconds, whatever is canceled; what does not end by
 * itself is ERR_UNAVAILABLE. */
MUSTCHECK const struct err *job_call_within(struct job *, int64_t ms,
    run_call *, void *arg, const char **out);
static inline bool
run_succeeded(const struct run_end *end)
{
	return end->how == RUN_EXITED && end->status == 0;
}
/* "exited with 3", "was killed by signal 9", "timed out"… in the arena. */
const char *run_text(struct arena *, const struct run_end *);

struct checkout {
	const char *branch; /* "" if HEAD is on none */
	const char *hash;
	const char *message;
	const char *stayed;  /* where the workspace is if it was not done: a
			      * record's text, NULL = at no commit */
	const char *commits; /* records of the branch's last, NULL = none */
	int64_t objects; /* when they last changed, -1 = that is not known */
};

enum checkout_how {
	CHECKOUT_DONE,
	CHECKOUT_FAILED, /* detail says why */
	CHECKOUT_TIMED_OUT,
	CHECKOUT_CANCELED,
	CHECKOUT_SUPERSEDED, /* detail says by what; nothing has changed */
};

/* Brings the workspace to the wanted commit. The credential is forgotten. */
MUSTCHECK const struct err *job_checkout(struct job *, struct checkout *out,
    enum checkout_how *how, const char **detail);
/* "STATUS DIRTY SIZE" of the workspace as it is. */
MUSTCHECK const struct err *job_workspace(struct job *, const char **out);
enum checkout_format { FORMAT_SHA1, FORMAT_SHA256 };
/* Makes .git from nothing around the objects that are there; ERR_NOTFOUND if
 * there are none: then it is an empty one of that format. */
MUSTCHECK const struct err *checkout_rebuild(struct arena *, int workspace,
    enum checkout_format format);

/* Answers git's question for a user or password from an inherited
 * descriptor. */
int job_askpass(const char *question, const char *fd);

/* Runs checkout and steps and writes the result. */
MUSTCHECK const struct err *job_steps(struct job *);

#endif
