/* SPDX-License-Identifier: ISC */
/*
 * Moves of deployments and steps from state to state.  Nothing else writes a
 * status: a move writes the row, the steps, the size of the log and what others
 * hear of it (the outbox of commit statuses), in one transaction.
 *
 * A move is conditional.  It names the state, and while a runner holds the
 * deployment also the epoch, that it starts from; where another was faster it
 * changes nothing.  A move that the table of legal moves lacks is ERR_CONFLICT,
 * whatever the row says.
 */
#ifndef SLIPWAY_STORE_MOVE_H
#define SLIPWAY_STORE_MOVE_H

#include "core/state.h"
#include "db/db.h"

struct move {
	int64_t id;         /* 0: all of the project that are in `from` */
	int64_t project_id; /* 0: the one with that id */
	enum state from;
	enum state to;
	enum reason reason; /* ends in `to`; REASON_NONE before the end */
	const char *detail; /* a sentence for people; NULL = none */
	int64_t epoch;      /* of the row before the move; not for pending ->
			     * canceled */
	/* pending -> running */
	const char *owner;
	const char *runner;
	int64_t lease; /* seconds */
	/* running -> final */
	struct maybe log_size;   /* not set: what is stored of it */
	struct when finished_at; /* none = now */
	bool expired; /* only if its lease ran out; moves the epoch on, so that
		       * the silent holder is fenced when it speaks */
};

/* What a job says of a step.  What it leaves unset keeps its value. */
struct move_step {
	int64_t deployment_id;
	int64_t epoch;
	int64_t position;
	enum state status;
	struct maybe exit_code;
	struct maybe signal;
	struct when started_at;
	struct when finished_at;
	struct maybe log_offset;
	struct maybe log_length;
};

/* How many deployments moved is in `out`; 0: another was faster.  Inside a
 * transaction, except for pending -> running, which is one statement.  Steps
 * that are pending at the end become skipped, running ones `interrupted`
 * (`canceled` where the deployment is). */
MUSTCHECK const struct err *move_deployment(struct db *, const struct move *,
    int64_t *out);
/* Inside the transaction that inserts a deployment: it is pending now. */
MUSTCHECK const struct err *move_created(struct db *, int64_t id);
/* Inside the transaction that stores the commit of a running deployment: from
 * here on the commit can get its status. */
MUSTCHECK const struct err *move_checked_out(struct db *, int64_t id);
/* One statement, no transaction.  A step that has the state already, or has
 * gone past it, stays as it is: an adopted run is read from its beginning.
 * ERR_CONFLICT if the move is illegal, ERR_PRECONDITION if another has the
 * deployment or there is no such step. */
MUSTCHECK const struct err *move_step(struct db *, const struct move_step *);

#endif
