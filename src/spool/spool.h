/* SPDX-License-Identifier: ISC */
/*
 * The spool: what dispatcher and job share, and what survives either.
 *
 *   SPOOL/<deployment>.<epoch>/
 *     log      the output, masked and capped, appended by the job alone
 *     result   events, appended by the job; the run is over when it ends in
 *              an END record
 *     lock     held by the job (fcntl, whole file) as long as it lives; empty
 *              until a job has begun, or until it is settled, under the lock,
 *              that none ever will
 *     control  a FIFO; a line "cancel" asks the job to end
 *
 *   SPOOL/objects.<project>
 *              when git's objects in its workspace last changed, as the last
 *              job of the project saw it; there is one for each project
 *              that has a directory on this host
 *
 * What a job is to do, its description, holds secrets: it is handed on as a
 * descriptor of memory and lies in no file.  It is complete when it ends in an
 * END record.
 *
 * Records of description and result are text: "NAME LENGTH\n" BYTES "\n".  A name is
 * [a-z-]+; a length is decimal, at most SPOOL_RECORD; a record that is cut
 * short is one that is not there yet.
 */
#ifndef SLIPWAY_SPOOL_SPOOL_H
#define SLIPWAY_SPOOL_SPOOL_H

#include <stdbool.h>

#include "core/arena.h"
#include "core/buf.h"

#define SPOOL_RECORD ((size_t)1 << 20)

/* Names of the records of a job description, in their order.  One value each,
 * but env, secret and step-* repeat: a step starts with its step-name. */
#define SPOOL_JOB_RECORDS(X)                                                   \
	X(DEPLOYMENT, "deployment") /* id */                                   \
	X(EPOCH, "epoch")                                                      \
	X(PROJECT, "project") /* id */                                         \
	X(PROJECT_NAME, "project-name")                                        \
	X(PIPELINE_NAME, "pipeline-name")                                      \
	X(REPOSITORY, "repository")                                            \
	X(BRANCH, "branch")         /* absent = HEAD */                        \
	X(COMMIT, "commit")         /* absent = the branch's */                \
	X(HEAD_ONLY, "head-only")   /* 1: only while it is the branch's */     \
	X(CREDENTIAL, "credential") /* "user\nsecret" for https */             \
	X(NOTE, "note") /* why there may be no credential, for a failure */    \
	X(TLS_CA, "tls-ca")   /* a CA file's text, for https */                \
	X(SSH_KEY, "ssh-key") /* a private key's text, for ssh */              \
	X(KNOWN_HOSTS, "known-hosts")                                          \
	X(OBJECTS, "objects") /* what the last result said of them */          \
	X(COMMITS, "commits") /* how many of the branch are to be told */      \
	X(ENV, "env")         /* NAME=value */                                 \
	X(SECRET, "secret")   /* NAME=value, masked in the log */              \
	X(STEP_NAME, "step-name")                                              \
	X(STEP_SCRIPT, "step-script")                                          \
	X(STEP_TIMEOUT, "step-timeout") /* seconds, 0 = none */                \
	X(STEP_WHEN, "step-when")       /* success, failure, always */         \
	X(TIMEOUT, "timeout")           /* of the pipeline, 0 = none */        \
	X(CHECKOUT_TIMEOUT, "checkout-timeout")                                \
	X(GRACE, "grace")                                                      \
	X(CANCEL_GRACE, "cancel-grace")                                        \
	X(LOG_MAX, "log-max")                                                  \
	X(PATH, "path")                                                        \
	X(ALLOW_HTTP, "allow-http") /* 1 or 0, as the next two */              \
	X(ALLOW_LOCAL, "allow-local")                                          \
	X(SUBMODULES, "submodules")                                            \
	X(JOB_END, "end")

/* Records of a result.  Times are milliseconds since 1970 UTC. */
#define SPOOL_RESULT_RECORDS(X)                                                  \
	X(CHECKED_OUT, "checked-out") /* "BRANCH\nHASH\nMESSAGE" */              \
	X(STAYED,                                                                \
	    "stayed") /* the same, where a checkout did not get to its   \
			     * end; BRANCH is empty if it is as before */       \
	X(COMMITS_SEEN, "commits")                                               \
	/* "BRANCH\n", then records of the same form, newest first: commit,    \
	 * "HASH SECONDS\nAUTHOR\nEMAIL\nMESSAGE" */ \
	X(STEP_STARTED, "step-started") /* "POSITION TIME LOGOFFSET" */          \
	X(STEP_ENDED, "step-ended")                                              \
	/* "POSITION STATUS EXIT SIGNAL TIME LOGLENGTH"; EXIT and SIGNAL   \
	     * are "-" where there is none */     \
	X(STEP_SKIPPED, "step-skipped") /* "POSITION" */                         \
	X(OBJECTS_SEEN,                                                          \
	    "objects") /* when git's objects last changed, in      \
				    * nanoseconds since 1970 */             \
	X(WORKSPACE, "workspace")                                                \
	/* "STATUS DIRTY SIZE"; DIRTY is "-" where git cannot tell */            \
	X(RESULT_END,                                                            \
	    "end") /* "STATUS REASON TIME\nDETAIL"; REASON may be    \
			      * "-" and DETAIL empty */

struct record {
	const char *name;
	const char *value; /* NUL-terminated */
	size_t len;        /* a script may not hold NUL, so strlen(value) */
};

void record_write(struct buf *, const char *name, const char *value,
    size_t len);
void record_printf(struct buf *, const char *name, const char *fmt, ...)
    PRINTFLIKE(3, 4);
/* The next record of data[*at..len); false if no whole one is left. Moves
 * *at past it; strings in the arena. ERR_INTERNAL if it is malformed. */
MUSTCHECK const struct err *record_read(struct arena *, const char *data,
    size_t len, size_t *at, struct record *out, bool *found);

#endif
