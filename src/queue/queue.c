/* SPDX-License-Identifier: ISC */
#include "queue/queue.h"

#include "queue/deployment.h"
#include "queue/notice.h"
#include "queue/report.h"
#include "queue/stores.h"
#include "queue/waiting.h"
#include "store/page.h"

#define SMALL_ARENA 65536

/* Arguments of all statements here. */
struct queue_args {
	int64_t id;
	int64_t epoch;
	const char *owner;
	const char *runner;
	int64_t lease;
	const char *branch;
	const char *hash;
	const char *message;
	const char *status;
	int64_t pause; /* milliseconds */
};

#include "queue/queue.sql.h"

const struct store queue_store = {
	.stmts = queue_stmts,
};

static const struct err *
no_longer(const char *call, int64_t id)
{
	return err_new(ERR_PRECONDITION,
	    "%s: deployment %lld is no longer held", call, (long long)id);
}

/* A write under an epoch: no row means that it no longer matches. */
static const struct err *
fenced_exec(struct db *db, const struct stmt *s, const void *args, int64_t id)
{
	const struct err *e;
	struct db_done done;

	if ((e = db_exec(db, s, args, &done)) != NULL)
		return e;
	return done.affected == 0 ? no_longer(s->name, id) : NULL;
}

const struct err *
queue_renew(struct db *db, int64_t id, int64_t epoch, const char *owner,
    int64_t lease)
{
	const struct queue_args args = { .id = id,
		.epoch = epoch,
		.owner = owner,
		.lease = lease };

	return fenced_exec(db, &sql_queue_renew, &args, id);
}

const struct err *
queue_held(struct db *db, struct arena *a, const char *owner, struct list *out)
{
	const struct queue_args args = { .owner = owner };

	return db_rows(db, a, &sql_queue_held, &args, out);
}

const struct err *
queue_held_by_runner(struct db *db, struct arena *a, const char *runner,
    struct list *out)
{
	const struct queue_args args = { .runner = runner };

	return db_rows(db, a, &sql_queue_held_by_runner, &args, out);
}

static const struct err *
commit_body(struct db *db, void *context)
{
	const struct queue_args *args = context;
	const struct err *e;

	if ((e = fenced_exec(db, &sql_queue_commit, args, args->id)) != NULL)
		return e;
	return move_checked_out(db, args->id);
}

const struct err *
queue_commit(struct db *db, int64_t id, int64_t epoch, const char *branch,
    const char *hash, const char *message)
{
	struct queue_args args = { .id = id,
		.epoch = epoch,
		.branch = branch,
		.hash = hash,
		.message = message };
	const struct err *e;

	/* without reports, most projects have nobody to tell */
	if (!report_wanted(&db_settings(db)->gitserver)) {
		e = fenced_exec(db, &sql_queue_commit, &args, id);
		return e != NULL ? e : notice_want(db, id, NOTICE_STARTED);
	}
	if (db_in_transaction(db))
		return commit_body(db, &args);
	return db_transaction(db, commit_body, &args);
}

/* A move in a transaction of its own. */
struct queue_move {
	struct move move;
	int64_t moved;
	const struct queue_wait *wait; /* NULL = a release without a pause */
};

static const struct err *
move_body(struct db *db, void *context)
{
	struct queue_move *x = context;

	return move_deployment(db, &x->move, &x->moved);
}

/* Stores the pause, and why. */
static const struct err *
pause_note(struct db *db, const struct queue_wait *wait)
{
	const struct queue_args args = { .id = wait->id,
		.epoch = wait->epoch,
		.pause = wait->pause };
	const struct waiting_note note = { .deployment_id = wait->id,
		.reason = WAITING_GIT,
		.detail = wait->detail,
		.runner = wait->runner };
	const struct err *e;

	if ((e = fenced_exec(db, &sql_queue_pause, &args, wait->id)) != NULL)
		return e;
	return waiting_record(db, &note);
}

/* A request that deletes a project or an environment cancels its pending
 * deployments. The lock on the project's row ensures that it does not miss this
 * one. */
static const struct err *
release_body(struct db *db, void *context)
{
	struct queue_move *x = context;
	struct move canceled = { .id = x->move.id,
		.epoch = x->move.epoch,
		.from = STATE_RUNNING,
		.to = STATE_CANCELED,
		.reason = REASON_CANCELED };
	const struct err *e;
	enum reason deleted;

	x->moved = 0;
	if ((e = deployment_hold_place(db, x->move.id, &deleted)) != NULL ||
	    (x->wait != NULL && (e = pause_note(db, x->wait)) != NULL))
		return e;
	if (deleted != REASON_NONE)
		canceled.reason = deleted;
	else
		e = move_deployment(db, &x->move, &x->moved);
	if (e != NULL || x->moved > 0)
		return e;
	canceled.detail = state_unstarted(canceled.reason);
	return move_deployment(db, &canceled, &x->moved);
}

static const struct err *
claim_release(struct db *db, int64_t id, int64_t epoch,
    const struct queue_wait *wait)
{
	struct queue_move x = { .move = { .id = id,
				    .epoch = epoch,
				    .from = STATE_RUNNING,
				    .to = STATE_PENDING },
		.wait = wait };
	const struct err *e;

	if ((e = db_transaction(db, release_body, &x)) != NULL || x.moved > 0)
		return e;
	return no_longer("queue_release", id);
}

const struct err *
queue_release(struct db *db, int64_t id, int64_t epoch)
{
	return claim_release(db, id, epoch, NULL);
}

const struct err *
queue_wait(struct db *db, const struct queue_wait *wait)
{
	return claim_release(db, wait->id, wait->epoch, wait);
}

/* Locks the row: the statements that follow would share it, and then wait for
 * others that share it, too. */
static const struct err *
end_hold(struct db *db, const struct queue_end *what)
{
	const struct queue_args key = { .id = what->id, .epoch = what->epoch };
	struct arena *a = arena_open(SMALL_ARENA);
	const struct err *e;
	struct held found;

	e = db_row(db, a, &sql_queue_hold, &key, &found);
	arena_close(a);
	return e != NULL && e->code == ERR_NOTFOUND ?
	    no_longer(sql_queue_hold.name, what->id) :
	    e;
}

static const struct err *
end_one(struct db *db, const struct queue_end *what)
{
	struct move move = { .id = what->id,
		.epoch = what->epoch,
		.from = STATE_RUNNING };
	const struct err *e;
	int64_t moved;

	if (what->before != NULL && !what->holds &&
	    (e = end_hold(db, what)) != NULL)
		return e;
	if (what->before != NULL &&
	    (e = what->before(db, what->context)) != NULL)
		return e;
	move.to = reason_kinds[what->reason].ends;
	move.reason = what->reason;
	move.detail = what->detail;
	move.warnings = what->warnings;
	move.log_size = (struct maybe){ what->log_size, true };
	move.finished_at = what->finished_at;
	if ((e = move_deployment(db, &move, &moved)) == NULL && moved == 0)
		e = no_longer("queue_end", what->id);
	return e;
}

struct ending {
	const struct queue_end *const *ends;
	size_t n;
};

static const struct err *
end_body(struct db *db, void *context)
{
	const struct ending *x = context;
	const struct err *e = NULL;
	size_t i;

	for (i = 0; e == NULL && i < x->n; i++)
		e = end_one(db, x->ends[i]);
	return e;
}

const struct err *
queue_end_all(struct db *db, const struct queue_end *const *ends, size_t n)
{
	struct ending x = { ends, n };

	return db_transaction(db, end_body, &x);
}

const struct err *
queue_end(struct db *db, const struct queue_end *what)
{
	const struct queue_args args = { .id = what->id,
		.epoch = what->epoch,
		.status = state_kinds[reason_kinds[what->reason].ends].name };
	const struct err *e, *late;
	struct arena *a;
	struct page_count found = { .n = 0 };

	late = queue_end_all(db, &what, 1);
	if (late == NULL || late->code != ERR_PRECONDITION)
		return late;
	/* an earlier call may have succeeded without a response */
	a = arena_open(SMALL_ARENA);
	e = db_row(db, a, &sql_queue_ended, &args, &found);
	arena_close(a);
	if (e == NULL && found.n == 0)
		e = no_longer("queue_end", what->id);
	return e;
}

const struct err *
queue_expire(struct db *db, int64_t *out)
{
	struct queue_move x;
	const struct err *e;
	const struct held *h;
	struct list list;
	struct arena *a;
	size_t i;

	*out = 0;
	a = arena_open(SMALL_ARENA);
	if ((e = db_rows(db, a, &sql_queue_expired, NULL, &list)) != NULL)
		goto out;
	h = list.items;
	for (i = 0; i < list.n; i++) {
		x.move = (struct move){ .id = h[i].id,
			.epoch = h[i].epoch,
			.from = STATE_RUNNING,
			.to = STATE_INTERRUPTED,
			.reason = REASON_LOST,
			.detail = "The lease expired, because the runner did "
				  "not renew it.",
			.expired = true };
		if ((e = db_transaction(db, move_body, &x)) != NULL)
			goto out;
		*out += x.moved;
	}
out:
	arena_close(a);
	return e;
}

const struct err *
queue_tidy(struct db *db)
{
	struct arena *a = arena_open(SMALL_ARENA);
	const struct err *e;
	struct page_count found;

	e = db_row(db, a, &sql_queue_old_tokens, NULL, &found);
	if (e == NULL && found.n > 0)
		e = db_exec(db, &sql_queue_tidy_tokens, NULL, NULL);
	arena_close(a);
	return e;
}
