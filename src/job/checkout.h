/* SPDX-License-Identifier: ISC */
/* Brings the workspace to the commit of a deployment. */
#ifndef SLIPWAY_JOB_CHECKOUT_H
#define SLIPWAY_JOB_CHECKOUT_H

#include "job/seen.h"
#include "spool/event.h"

struct job;

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
/* Brings the workspace to the requested commit, then erases the credential. */
MUSTCHECK const struct err *job_checkout(struct job *, struct checkout *out,
    enum checkout_how *how, const char **detail);

#endif
