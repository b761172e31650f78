/* SPDX-License-Identifier: ISC */
/*
 * From which address, and with which credential, a job clones its repository.
 *
 * This may require requests to the Git server, which take seconds, so a child
 * process finds them: the finder.
 */
#ifndef SLIPWAY_DISPATCH_CLONE_H
#define SLIPWAY_DISPATCH_CLONE_H

#include <sys/types.h>

#include <stdbool.h>
#include <stdint.h>

#include "core/buf.h"
#include "spool/description.h"

struct claim;
struct dispatch;

struct clone {
	struct buf address;    /* the repository's current one */
	struct buf credential; /* "user\nsecret", empty = none */
	const char *note;      /* why there is none, or not the usual one */
	const char *rejection; /* why it must not be cloned, or NULL */
	const char *offline;   /* why nothing may be fetched, or NULL: a commit
				* that the clone has can run */
	const char *silent;    /* the outage for which there is no credential,
				* or NULL */
	bool is_away;          /* the server does not respond: a rejection may
				* pass */
	int64_t retry_after;   /* seconds that the server demands, or 0 */
	struct buf cause;      /* why a request failed, "" = unknown */
	struct buf unsure;     /* the text of a rejection */
	bool has_commit;       /* the deployment names one */
	enum job_submodules submodules;
	struct buf lent;    /* addresses of submodules that the credential
				* reads, see setter_lend() */
	struct buf refused; /* why it does not read others */
	bool is_bound;      /* it is cloned only if the server confirms the
				* stored number */
	pid_t finder;       /* 0 = none, or it has ended */
	int status;         /* its wait status */
	int answer;         /* the pipe from it, -1 = closed */
	int64_t until;      /* when it is given up, monotonic */
};

/* Whether the job contacts the Git server: for a checkout, or to compare the
 * commit of a push with the head of its branch. */
bool clone_is_needed(const struct claim *);
void clone_init(struct clone *);
/* Fills in what is known here, and starts a finder for the rest.  `name` is the
 * task's, for the log. */
void clone_begin(const struct dispatch *, struct clone *, const struct claim *,
    const char *name);
/* Takes the finder's answer. Returns whether nothing more will be found. */
bool clone_is_done(const struct dispatch *, struct clone *, const char *name);
/* Closes the pipe, wipes the credential and frees the rest. */
void clone_release(struct clone *);

#endif
