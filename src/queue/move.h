/* SPDX-License-Identifier: ISC */
/*
 * State transitions of deployments and steps. No other file writes a status: a
 * move writes the row, the steps, the size of the log and the outboxes of commit
 * statuses and notifiers in one transaction.
 *
 * A move is conditional. It names the state that it starts from, and, while a
 * runner holds the deployment, the epoch. If the row does not match, the move
 * changes nothing. A move that is not in the table of legal moves is
 * ERR_CONFLICT, whatever the row contains.
 */
#ifndef SLIPWAY_QUEUE_MOVE_H
#define SLIPWAY_QUEUE_MOVE_H

#include "core/state.h"
#include "db/db.h"

struct move {
	int64_t id;         /* 0 = all deployments of the project in `from` */
	int64_t project_id; /* 0 = the deployment with that id */
	enum state from;
	enum state to;
	enum reason reason; /* of a final state; otherwise REASON_NONE */
	const char *detail; /* a sentence for users; NULL = none */
	int64_t epoch;      /* of the row before the move; not for pending ->
			     * canceled */
	/* pending -> running */
	const char *owner;
	const char *runner;
	const char *labels; /* of the runner, a JSON array */
	int64_t lease;      /* seconds */
	/* running -> final */
	int64_t warnings;        /* steps that failed and may */
	struct maybe log_size;   /* not set = size of the stored log */
	struct when finished_at; /* none = now */
	bool expired; /* only if the lease has expired; increments the epoch,
		       * which fences the silent holder */
};

/* A job's report on a step. Members that are not set do not change. */
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

/* Moves deployments; `out` is their number, 0 if the row did not match. A lock,
 * or an environment that is bound to another runner, keeps a deployment from
 * starting. Call it inside a transaction, except for pending -> running, which
 * is one statement.
 * When a deployment ends, its pending steps become skipped and its running
 * steps `interrupted` (`canceled` if the deployment is). */
MUSTCHECK const struct err *move_deployment(struct db *, const struct move *,
    int64_t *out);
/* A row with the id of a deployment. */
struct move_id {
	int64_t id;
};
/* Cancels pending deployments (struct move_id), one after another, so that each
 * gets its commit status. */
MUSTCHECK const struct err *move_cancel(struct db *, const struct list *,
    enum reason);
/* Inside the transaction that deletes an environment: cancels what waits there. */
MUSTCHECK const struct err *move_cancel_of_environment(struct db *,
    struct arena *, int64_t environment_id);
/* Inside the transaction that creates the deployment: cancels older ones that
 * wait for the same branch, pipeline and environment, that no user started, and
 * that it replaces: those of the commit `before`, or all if it has no commit
 * itself and so deploys the head of the branch. */
MUSTCHECK const struct err *move_cancel_replaced(struct db *, struct arena *,
    int64_t deployment_id, const char *before);
/* Inside the transaction that inserts a pending deployment. */
MUSTCHECK const struct err *move_created(struct db *, int64_t id);
/* The same for one that waits for approval. */
MUSTCHECK const struct err *move_waiting(struct db *, int64_t id);
/* Inside the transaction that stores the commit of a running deployment: from
 * now on the commit can get its status. */
MUSTCHECK const struct err *move_checked_out(struct db *, int64_t id);
/* A single statement without a transaction. A step that already has the state
 * or a later one does not change, because an adopted run is read from its
 * beginning. ERR_CONFLICT if the move is illegal, ERR_PRECONDITION if the epoch
 * or the position does not match. */
MUSTCHECK const struct err *move_step(struct db *, const struct move_step *);

#endif
