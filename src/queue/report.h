/* SPDX-License-Identifier: ISC */
/*
 * The outbox of commit statuses for the Git server.
 *
 * queue/move.h writes to it in the transaction that moves a deployment, so no
 * move can forget it. It does so only if the settings enable statuses and name
 * a Git server that accepts them (report_wanted), the repository may be on that
 * server, and the full hash of the commit is known.
 */
#ifndef SLIPWAY_QUEUE_REPORT_H
#define SLIPWAY_QUEUE_REPORT_H

#include "core/state.h"
#include "db/db.h"

/* The deployment whose state a status shows. */
struct report_shown {
	int64_t deployment_id;
	const char *wanted;
	const char *reason;
	bool is_skipped; /* no step of it began: nothing was deployed */
	bool needs_approval;
	bool is_warned; /* it succeeded with warnings */
};

/* A due report and the content of its status. */
struct report {
	int64_t deployment_id;
	const char *wanted; /* pending running success failed error canceled */
	const char *told;   /* NULL = nothing was sent */
	int64_t attempts;   /* including this one */
	int64_t age;        /* seconds since it became wanted */
	const char *fault;  /* of the previous attempt; NULL */
	struct when held_until;
	struct report_shown shown; /* it, or an older one if it was skipped */
	int64_t project_id;
	const char *project_name;
	const char *repository;
	const char *environment_name; /* NULL = none */
	const char *pipeline_name;
	bool is_shared; /* another project reports under that name */
	const char *branch;
	const char *tag;
	const char *commit_hash;
	struct maybe created_by;
};

/* Whether commit statuses are enabled; only then rows are written. */
bool report_wanted(const struct settings_gitserver *);
/* Requests a status of the deployment's commit, inside the transaction that
 * changes the deployment. A state that was sent already causes no work. */
MUSTCHECK const struct err *report_want(struct db *, int64_t deployment_id,
    enum commit_state);
/* The same for all deployments of a project that ended with the reason. */
MUSTCHECK const struct err *report_want_ended(struct db *, int64_t project_id,
    enum reason);
/* Requests that the state is sent again, as its description has changed. */
MUSTCHECK const struct err *report_again(struct db *, int64_t deployment_id);
/* Claims the report that has waited longest for `seconds`; ERR_NOTFOUND,
 * without a write, if none is due. A report that a later deployment makes
 * instead is skipped, and one whose status another report that is claimed
 * sends. */
MUSTCHECK const struct err *report_claim(struct db *, struct arena *,
    int64_t seconds, struct report *out);
/* Records that the wanted status was sent. If another process has claimed the
 * report since, it is sent again, and the two functions below do nothing. */
MUSTCHECK const struct err *report_told(struct db *, const struct report *);
/* Records a failure: tries again in `seconds`, or at once if the wanted status
 * has changed. */
MUSTCHECK const struct err *report_later(struct db *, const struct report *,
    int64_t seconds, const char *fault);
/* Gives up, or there is nothing to send to this server, until the wanted status
 * changes. `fault` may be NULL. */
MUSTCHECK const struct err *report_drop(struct db *, const struct report *,
    const char *fault);
/* Milliseconds until a report is due, at most `max`; reads only. */
MUSTCHECK const struct err *report_due(struct db *, int64_t max, int64_t *out);

#endif
