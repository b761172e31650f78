/* SPDX-License-Identifier: ISC */
#include "queue/move.h"

#include "queue/notice.h"
#include "queue/report.h"
#include "queue/stores.h"
#include "queue/total.h"
#include "store/audit.h"
#include "store/runner.h"

#define SMALL_ARENA 4096

/* Arguments of all statements here. */
struct move_args {
	int64_t id;
	int64_t project_id;
	int64_t epoch;
	const char *from;
	const char *status;
	const char *reason;
	const char *detail;
	const char *owner;
	const char *runner;
	const char *labels;
	int64_t lease;
	int64_t warnings;
	struct maybe log_size;
	struct when finished_at;
	bool expired;
	int64_t shard;
	const char *changes; /* for the audit log */
};

/* What a move to a final state returns. */
struct ended {
	int64_t n;    /* how many rows moved */
	bool notices; /* the project has notifiers */
};

/* Arguments of a step's move, with the states from which it is legal as a list
 * for FIND_IN_SET. */
struct step_args {
	int64_t deployment_id;
	int64_t epoch;
	int64_t position;
	const char *status;
	const char *from;
	struct maybe exit_code;
	struct maybe signal;
	struct when started_at;
	struct when finished_at;
	struct maybe log_offset;
	struct maybe log_length;
};
struct step_found {
	const char *status;
};

/* A deployment that was created, and the commit that its push replaced. */
struct replaced {
	int64_t id;
	const char *before;
};

#include "queue/move.sql.h"

const struct store move_store = {
	.stmts = move_stmts,
};

/* The statements that write a move; NULL = not that way. */
struct writes {
	const struct stmt *row;
	const struct stmt *steps; /* NULL = `row` writes them, or they stay */
};

/* All legal moves of a deployment. Claiming or releasing a deployment does not
 * change its commit status, because only the checkout determines the commit. */
static const struct {
	enum state from, to;
	struct writes one, all;
} moves[] = {
	{ STATE_PENDING, STATE_RUNNING, { &sql_move_take, NULL },
	    { NULL, NULL } },
	{ STATE_PENDING, STATE_CANCELED, { &sql_move_cancel, NULL },
	    { &sql_move_cancel_all, &sql_move_cancel_all_steps } },
	{ STATE_RUNNING, STATE_PENDING, { &sql_move_release, NULL },
	    { NULL, NULL } },
	{ STATE_RUNNING, STATE_SUCCESS, { &sql_move_end, NULL },
	    { NULL, NULL } },
	{ STATE_RUNNING, STATE_FAILED, { &sql_move_end, NULL },
	    { NULL, NULL } },
	{ STATE_RUNNING, STATE_CANCELED, { &sql_move_end, NULL },
	    { NULL, NULL } },
	{ STATE_RUNNING, STATE_INTERRUPTED, { &sql_move_end, NULL },
	    { NULL, NULL } },
};

/* The states from which a job may move a step to a state; none if no job
 * reports it. A lost record of the step's start must not prevent storing its
 * end. */
#define FROM(state) (1U << STATE_##state)
static const unsigned step_from[STATE__MAX] = {
	[STATE_RUNNING] = FROM(PENDING),
	[STATE_SUCCESS] = FROM(PENDING) | FROM(RUNNING),
	[STATE_FAILED] = FROM(PENDING) | FROM(RUNNING),
	[STATE_SKIPPED] = FROM(PENDING),
	[STATE_CANCELED] = FROM(PENDING) | FROM(RUNNING),
	[STATE_INTERRUPTED] = FROM(PENDING) | FROM(RUNNING),
};

static const struct writes *
writes_of(const struct move *m)
{
	const struct writes *found = NULL;
	size_t i;

	for (i = 0; i < sizeof(moves) / sizeof(moves[0]); i++)
		if (moves[i].from == m->from && moves[i].to == m->to)
			found = m->id != 0 ? &moves[i].one : &moves[i].all;
	if (found == NULL || found->row == NULL)
		return NULL;
	/* the reason means the same as the state */
	if (state_kinds[m->to].is_final ?
		reason_kinds[m->reason].ends != m->to :
		m->reason != REASON_NONE)
		return NULL;
	return found;
}

/* The event of a state that notifiers send messages of; NOTICE__MAX = none.
 * Only the checkout, and not the claim, starts a deployment for good. */
static const enum notice_event event_of[STATE__MAX] = {
	[STATE_PENDING] = NOTICE__MAX,
	[STATE_RUNNING] = NOTICE_STARTED,
	[STATE_SUCCESS] = NOTICE_SUCCEEDED,
	[STATE_FAILED] = NOTICE_FAILED,
	[STATE_SKIPPED] = NOTICE__MAX,
	[STATE_CANCELED] = NOTICE__MAX,
	[STATE_INTERRUPTED] = NOTICE_FAILED,
};

/* Announces a deployment in a new state, in the same transaction, after its row
 * is written. Further recipients belong here and in the fragment @ended
 * of move.sql. */
static const struct err *
move_announce(struct db *db, const struct move *m, enum commit_state state,
    bool has_notifiers)
{
	const enum notice_event event = event_of[m->to];
	const struct err *e;

	if (event != NOTICE__MAX &&
	    (e = notice_want_of(db, m->id, event, has_notifiers)) != NULL)
		return e;
	return report_want(db, m->id, state);
}

static const struct err *
end_one(struct db *db, const struct stmt *how, struct move_args *args,
    const struct move *m, int64_t *out)
{
	struct arena *a = arena_open(SMALL_ARENA);
	struct ended ended;
	const struct err *e;
	struct buf changes;

	buf_init(&changes, SMALL_ARENA);
	audit_end_changes(&changes, m->from, m->to, m->reason);
	args->changes = changes.data;
	args->shard = total_shard();
	if ((e = buf_check(&changes)) == NULL &&
	    (e = db_row(db, a, how, args, &ended)) == NULL && ended.n > 0) {
		*out = ended.n;
		e = move_announce(db, m, reason_kinds[m->reason].commit,
		    ended.notices);
	}
	buf_release(&changes);
	arena_close(a);
	return e;
}

/* Ends all pending deployments of a project. */
static const struct err *
end_all(struct db *db, const struct writes *how, const struct move_args *args,
    const struct move *m, int64_t *out)
{
	const struct err *e;
	struct db_done done;

	if ((e = db_exec(db, how->row, args, &done)) != NULL)
		return e;
	*out = done.affected;
	if (*out == 0)
		return NULL;
	if ((e = db_exec(db, how->steps, args, NULL)) != NULL ||
	    (e = total_ended_all(db, m->project_id, m->reason)) != NULL)
		return e;
	return report_want_ended(db, m->project_id, m->reason);
}

const struct err *
move_deployment(struct db *db, const struct move *m, int64_t *out)
{
	const struct writes *how = writes_of(m);
	struct move_args args = { .id = m->id,
		.project_id = m->project_id,
		.epoch = m->epoch,
		.from = state_kinds[m->from].name,
		.status = state_kinds[m->to].name,
		.reason = reason_kinds[m->reason].name,
		.detail = m->detail,
		.owner = m->owner,
		.runner = m->runner,
		.labels = m->labels,
		.lease = m->lease,
		.warnings = m->warnings,
		.log_size = m->log_size,
		.finished_at = m->finished_at,
		.expired = m->expired };
	const struct err *e;
	struct db_done done;

	*out = 0;
	if (how == NULL)
		return err_new(ERR_CONFLICT,
		    "a deployment cannot move from %s to %s (reason %s)",
		    args.from, args.status,
		    args.reason == NULL ? "none" : args.reason);
	if (how->steps != NULL)
		return end_all(db, how, &args, m, out);
	if (state_kinds[m->to].is_final)
		return end_one(db, how->row, &args, m, out);
	if ((e = db_exec(db, how->row, &args, &done)) == NULL)
		*out = done.affected;
	return e;
}

const struct err *
move_cancel(struct db *db, const struct list *pending, enum reason reason)
{
	struct move canceled = { .from = STATE_PENDING,
		.to = STATE_CANCELED,
		.reason = reason,
		.detail = state_unstarted(reason) };
	const struct move_id *item = pending->items;
	const struct err *e = NULL;
	int64_t n;
	size_t i;

	for (i = 0; e == NULL && i < pending->n; i++) {
		canceled.id = item[i].id;
		e = move_deployment(db, &canceled, &n);
	}
	return e;
}

const struct err *
move_cancel_of_environment(struct db *db, struct arena *a,
    int64_t environment_id)
{
	const struct move_id args = { .id = environment_id };
	const struct err *e;
	struct list list;

	e = db_rows(db, a, &sql_move_waiting_of_environment, &args, &list);
	return e != NULL ? e : move_cancel(db, &list, REASON_ENVIRONMENT);
}

const struct err *
move_cancel_replaced(struct db *db, struct arena *a, int64_t deployment_id,
    const char *before)
{
	const struct replaced args = { .id = deployment_id,
		.before = before != NULL ? before : "" };
	const struct err *e;
	struct list list;

	e = db_rows(db, a, &sql_move_replaced, &args, &list);
	return e != NULL ? e : move_cancel(db, &list, REASON_SUPERSEDED);
}

const struct err *
move_created(struct db *db, int64_t id)
{
	return report_want(db, id, COMMIT_PENDING);
}

const struct err *
move_waiting(struct db *db, int64_t id)
{
	const struct err *e;

	if ((e = move_created(db, id)) != NULL)
		return e;
	return notice_want(db, id, NOTICE_WAITING);
}

const struct err *
move_checked_out(struct db *db, int64_t id)
{
	const struct err *e;

	if ((e = notice_want(db, id, NOTICE_STARTED)) != NULL)
		return e;
	return report_want(db, id, COMMIT_RUNNING);
}

/* The names of a set of states, for FIND_IN_SET. */
static const char *
names_of(struct arena *a, unsigned set)
{
	const char *names = "";
	enum state s;

	for (s = 0; s < STATE__MAX; s++)
		if ((set & 1U << s) != 0)
			names = arena_printf(a, "%s%s%s", names,
			    names[0] == '\0' ? "" : ",", state_kinds[s].name);
	return names;
}

/* Explains why a step did not move. */
static const struct err *
step_stays(struct db *db, struct arena *a, const struct step_args *args,
    enum state to)
{
	struct step_found found;
	const struct err *e;
	enum state at;

	e = db_row(db, a, &sql_move_step_at, args, &found);
	if (e != NULL && e->code == ERR_NOTFOUND)
		return err_new(ERR_PRECONDITION,
		    "%s: deployment %lld is no longer held", sql_move_step.name,
		    (long long)args->deployment_id);
	if (e != NULL)
		return e;
	at = state_find(found.status);
	if (step_from[to] != 0 && at < STATE__MAX &&
	    (at == to || (step_from[at] & 1U << to) != 0))
		return NULL;
	return err_new(ERR_CONFLICT,
	    "step %lld of deployment %lld cannot move from %s to %s",
	    (long long)args->position, (long long)args->deployment_id,
	    found.status, args->status);
}

const struct err *
move_step(struct db *db, const struct move_step *m)
{
	struct arena *a = arena_open(SMALL_ARENA);
	const struct step_args args = { .deployment_id = m->deployment_id,
		.epoch = m->epoch,
		.position = m->position,
		.status = state_kinds[m->status].name,
		.from = names_of(a, step_from[m->status]),
		.exit_code = m->exit_code,
		.signal = m->signal,
		.started_at = m->started_at,
		.finished_at = m->finished_at,
		.log_offset = m->log_offset,
		.log_length = m->log_length };
	const struct err *e;
	struct db_done done;

	e = db_exec(db, &sql_move_step, &args, &done);
	if (e == NULL && done.affected == 0)
		e = step_stays(db, a, &args, m->status);
	arena_close(a);
	return e;
}
