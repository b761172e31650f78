/* SPDX-License-Identifier: ISC */
/*
 * The job: one deployment, from its description to its result.  The process runs as
 * the account of the steps and is their subreaper, so that everything they start
 * remains its descendant.
 */
#ifndef SLIPWAY_JOB_JOB_H
#define SLIPWAY_JOB_JOB_H

#include "core/arena.h"
#include "core/proc.h"
#include "job/log.h"
#include "spool/description.h"
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

/* Step i of its description. */
static inline const struct job_step *
job_step_at(const struct job *job, size_t i)
{
	return (const struct job_step *)job->spec.steps.items + i;
}

#endif
