/* SPDX-License-Identifier: ISC */
/*
 * The description of a job: what slipway-job needs to know of its deployment.
 * The dispatcher writes it, and the job reads it.
 *
 * Its text consists of records (spool.h), one for each member, named after it
 * with `-` for `_`; a variable is "NAME=value", and the members of a step begin
 * with "step-".  A member that is 0, false, NULL or empty has no record.  The
 * last record is "end".
 *
 * The text contains secrets: it is passed as a descriptor of memory and never
 * written to a file.
 */
#ifndef SLIPWAY_SPOOL_DESCRIPTION_H
#define SLIPWAY_SPOOL_DESCRIPTION_H

#include "core/buf.h"
#include "core/field.h"

enum job_checkout { CHECKOUT_FRESH, CHECKOUT_KEEP, CHECKOUT_NONE };
enum job_when { WHEN_SUCCESS, WHEN_FAILURE, WHEN_ALWAYS };
/* Their names, which the API has, too; both end with NULL. */
extern const char *const job_checkouts[];
extern const char *const job_whens[];

/* What to do if the branch or tag has moved on from the commit. */
enum job_head {
	HEAD_ANY,    /* check out the commit */
	HEAD_REJECT, /* nothing */
	HEAD_FOLLOW, /* check out the other one */
};

/* What becomes of submodules. */
enum job_submodules {
	SUBMODULES_NONE,
	SUBMODULES_FETCHED,
	SUBMODULES_LENT, /* with the credential only from the addresses that
			  * are lent, and without the key */
};

struct job_step {
	const char *name;
	const char *script;
	const char *directory; /* in the workspace; NULL = its root */
	int64_t timeout;       /* seconds, 0 = none */
	int64_t when;          /* enum job_when */
	bool may_fail;
};

/* All times are in seconds; 0 = no limit. */
struct job_description {
	int64_t deployment;
	int64_t epoch;
	int64_t project;
	const char *project_name;
	const char *pipeline_name;
	const char *environment_name; /* NULL = none */
	int64_t rollback_to; /* the deployment that a rollback repeats, or 0 */
	const char *repository;
	const char *branch; /* NULL = that of HEAD */
	const char *tag;    /* in place of the branch */
	const char *commit; /* NULL = the branch's */
	int64_t head_only;  /* enum job_head */
	bool on_branch;     /* reject a commit that the branch or tag does not
			     * contain */
	const char *credential; /* "user\nsecret" for https */
	const char *note;       /* on a missing credential, for a failure */
	const char *offline;    /* why nothing may be fetched, or NULL */
	const char *silent;   /* the outage for which there is no credential */
	bool git_known;       /* the repository's address was right before */
	int64_t git_patience; /* how long the deployment may wait for its Git
			       * server; 0 = not at all */
	const char *tls_ca;   /* text of a file of CA certificates, for https */
	const char *ssh_key;  /* text of a private key, for ssh */
	const char *known_hosts; /* text of such a file */
	const char *objects;     /* what the last result reported */
	int64_t commits;         /* how many of the branch to report */
	struct map env;
	struct map secret; /* variables that are masked in the log */
	struct list steps; /* struct job_step */
	int64_t timeout;   /* of the pipeline */
	int64_t checkout_timeout;
	int64_t grace;
	int64_t cancel_grace;
	int64_t log_max; /* bytes */
	const char *path;
	bool allow_http;
	bool allow_local;
	int64_t submodules;  /* enum job_submodules */
	const char *lent;    /* addresses of submodules, separated by blanks */
	const char *refused; /* why others are not among them */
	bool lfs;            /* fetch the files of Git LFS */
	int64_t checkout;    /* enum job_checkout */
};

/* Appends the members that are set, so that a description can be written in
 * several parts; the last one is followed by its end.  buf_check() reports what
 * is too long. */
void job_description_write(struct buf *, const struct job_description *);
void job_description_end(struct buf *);
/* Reads all of a file; strings live in the arena.  ERR_INTERNAL names the record
 * that is malformed, unknown or missing. */
MUSTCHECK const struct err *job_description_read(struct arena *, int fd,
    struct job_description *out);

#endif
