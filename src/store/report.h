/* SPDX-License-Identifier: ISC */
/* What the Git server is to be told of deployments' commits: an outbox. */
#ifndef SLIPWAY_STORE_REPORT_H
#define SLIPWAY_STORE_REPORT_H

#include "db/db.h"

extern const char *const report_states[]; /* ends with NULL */

/* One that is due, with what the status says. */
struct report {
	int64_t deployment_id;
	const char *wanted; /* pending running success failed error canceled */
	const char *told;   /* NULL = nothing yet */
	int64_t attempts;
	int64_t project_id;
	const char *repository;
	const char *pipeline_name;
	const char *branch;
	const char *commit_hash; /* NULL = not known yet */
	const char *reason;
	struct maybe created_by;
};

extern const struct stmt *const report_stmts[];

/* To be told; inside the transaction that changes the deployment, or after
 * it. A state that is told already is no work. */
MUSTCHECK const struct err *report_want(struct db *, int64_t deployment_id,
    const char *state);
/* The one that has waited longest, held for `seconds`: ERR_NOTFOUND if none is
 * due. Those whose commit is not known are not. Writes nothing then. */
MUSTCHECK const struct err *report_claim(struct db *, struct arena *,
    int64_t seconds, struct report *out);
/* `state` was told. */
MUSTCHECK const struct err *report_told(struct db *, int64_t deployment_id,
    const char *state);
/* It failed: again in `seconds`. */
MUSTCHECK const struct err *report_later(struct db *, int64_t deployment_id,
    int64_t seconds, const char *fault);
/* Given up, or nothing that this server can be told. */
MUSTCHECK const struct err *report_drop(struct db *, int64_t deployment_id);
/* Milliseconds until one is due, at most `max`; reads only. */
MUSTCHECK const struct err *report_due(struct db *, int64_t max, int64_t *out);

#endif
