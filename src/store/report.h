/* SPDX-License-Identifier: ISC */
/*
 * The statuses that the Git server should show for the commits of deployments:
 * an outbox.
 *
 * store/move.h writes into it, in the transaction that moves a deployment, so no
 * way of moving one can forget it.  It does so only if the settings want
 * statuses and name a Git server that takes them (report_wanted), the repository
 * may be on that server, and the whole hash of the commit is known.
 */
#ifndef SLIPWAY_STORE_REPORT_H
#define SLIPWAY_STORE_REPORT_H

#include "core/state.h"
#include "db/db.h"

/* One that is due, with what the status says. */
struct report {
	int64_t deployment_id;
	const char *wanted; /* pending running success failed error canceled */
	const char *told;   /* NULL = nothing yet */
	int64_t attempts;   /* this one included */
	int64_t age;        /* seconds since it was wanted */
	const char *fault;  /* of the attempt before; NULL */
	struct when held_until;
	bool superseded; /* a later deployment tells of the same commit */
	int64_t project_id;
	const char *repository;
	const char *pipeline_name;
	const char *branch;
	const char *commit_hash;
	const char *reason;
	struct maybe created_by;
};

/* Whether there is anything to do for this file: a row is written only then. */
bool report_wanted(const struct settings_gitserver *);
/* Asks for a status of the deployment's commit, inside the transaction that
 * changes the deployment; a state that the server knows already is no work. */
MUSTCHECK const struct err *report_want(struct db *, int64_t deployment_id,
    enum commit_state);
/* The same for all of a project that have ended for the reason. */
MUSTCHECK const struct err *report_want_ended(struct db *, int64_t project_id,
    enum reason);
/* The one that has waited longest, held for `seconds`: ERR_NOTFOUND if none is
 * due. Writes nothing then.  What a later deployment tells is not given out; nor
 * that, while the older one's is held. */
MUSTCHECK const struct err *report_claim(struct db *, struct arena *,
    int64_t seconds, struct report *out);
/* What was wanted was told.  Where another holds it by now, it is to be told
 * again; the two below do nothing then. */
MUSTCHECK const struct err *report_told(struct db *, const struct report *);
/* It failed: again in `seconds`, or at once if something newer is wanted. */
MUSTCHECK const struct err *report_later(struct db *, const struct report *,
    int64_t seconds, const char *fault);
/* Given up, or nothing that this server can be told, until there is something
 * newer to tell.  `fault` may be NULL. */
MUSTCHECK const struct err *report_drop(struct db *, const struct report *,
    const char *fault);
/* Milliseconds until one is due, at most `max`; reads only. */
MUSTCHECK const struct err *report_due(struct db *, int64_t max, int64_t *out);

#endif
