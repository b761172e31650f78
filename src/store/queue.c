/* SPDX-License-Identifier: ISC */
#include "store/queue.h"

#include <stdlib.h>
#include <string.h>

#include "store/report.h"
#include "store/store.h"

#define ROUNDS 4 /* looks at the queue before a claim gives up */
#define SMALL_ARENA 65536

/* Arguments of all statements here. */
struct queue_args {
	int64_t id;
	int64_t epoch;
	int64_t new_epoch;
	const char *owner;
	const char *runner;
	int64_t lease;
	const char *branch;
	const char *hash;
	const char *message;
	const char *status;
	const char *reason;
	const char *detail;
	int64_t log_size;
	struct when finished_at;
};

struct candidate {
	int64_t id;
	int64_t epoch;
};
struct found {
	int64_t n;
};

#define A(m) FIELD(struct queue_args, m, 0, .doc = NULL)
#define C(m) FIELD(struct claim, m, 0, .doc = NULL)
#define E(m) FIELD(struct queue_step_event, m, 0, .doc = NULL)
#define H(m) FIELD(struct held, m, 0, .doc = NULL)
#define S(m) FIELD(struct deployment_step, m, 0, .doc = NULL)

static const struct field id_args[] = { A(id), FIELD_END };
static const struct field id_epoch_args[] = { A(id), A(epoch), FIELD_END };
static const struct field owner_args[] = { A(owner), FIELD_END };
static const struct field runner_args[] = { A(runner), FIELD_END };
static const struct field found_row[] = {
	FIELD(struct found, n, 0, .doc = NULL),
	FIELD_END,
};
static const struct field candidate_row[] = {
	FIELD(struct candidate, id, 0, .doc = NULL),
	FIELD(struct candidate, epoch, 0, .doc = NULL),
	FIELD_END,
};
static const struct field held_row[] = { H(id), H(epoch), H(owner), H(cancel),
	FIELD_END };

/* The oldest of each project that is idle.  The inner query skips through the
 * index from project to project, however long the queue is. */
static const struct stmt candidates = {
	.name = "queue_candidates",
	.sql = "SELECT d.id, d.epoch FROM (SELECT project_id, MIN(id) AS id"
	       " FROM deployment WHERE status = 'pending'"
	       " GROUP BY project_id) q"
	       " JOIN deployment d ON d.id = q.id"
	       " LEFT JOIN deployment r ON r.running_project = q.project_id"
	       " WHERE r.id IS NULL ORDER BY d.id LIMIT 64",
	.row = candidate_row,
	.rowsize = sizeof(struct candidate),
};

static const struct field take_args[] = { A(new_epoch), A(owner), A(runner),
	A(lease), A(id), A(epoch), FIELD_END };
static const struct stmt take = {
	.name = "queue_take",
	.sql = "UPDATE deployment SET status = 'running', epoch = ?, owner = ?,"
	       " runner = ?, lease_until = NOW(3) + INTERVAL ? SECOND,"
	       " started_at = NOW(3)"
	       " WHERE id = ? AND status = 'pending' AND epoch = ?",
	.args = take_args,
};
static const struct field mine_args[] = { A(id), A(epoch), A(owner),
	FIELD_END };
static const struct stmt mine = {
	.name = "queue_mine",
	.sql = "SELECT COUNT(*) AS n FROM deployment WHERE id = ?"
	       " AND epoch = ? AND owner = ? AND status = 'running'",
	.args = mine_args,
	.row = found_row,
	.rowsize = sizeof(struct found),
};
static const struct field claim_row[] = { C(id), C(epoch), C(project_id),
	C(project_name), C(project_dir), C(repository), C(pipeline_name),
	C(branch), C(commit_hash), C(env_vars), C(secret_vars),
	C(timeout_seconds), C(created_by), C(head_only), C(cancel), FIELD_END };
static const struct stmt load = {
	.name = "queue_load",
	.sql = "SELECT d.id, d.epoch, d.project_id, p.name AS project_name,"
	       " p.project_dir, p.repository, l.name AS pipeline_name,"
	       " d.branch, d.commit_hash, d.env_vars, d.secret_vars,"
	       " d.timeout_seconds, d.created_by,"
	       " d.`trigger` = 'webhook' AS head_only,"
	       " d.cancel_at IS NOT NULL AS cancel"
	       " FROM deployment d JOIN project p ON p.id = d.project_id"
	       " JOIN pipeline l ON l.id = d.pipeline_id WHERE d.id = ?",
	.args = id_args,
	.row = claim_row,
	.rowsize = sizeof(struct claim),
};
static const struct field step_row[] = { S(position), S(name), S(script),
	S(timeout_seconds), S(run_when), FIELD_END };
static const struct stmt load_steps = {
	.name = "queue_load_steps",
	.sql = "SELECT position, name, script, timeout_seconds, run_when"
	       " FROM deployment_step WHERE deployment_id = ?"
	       " ORDER BY position",
	.args = id_args,
	.row = step_row,
	.rowsize = sizeof(struct deployment_step),
};

static const struct stmt release = {
	.name = "queue_release",
	.sql = "UPDATE deployment SET status = 'pending', epoch = epoch + 1,"
	       " owner = NULL, runner = NULL, lease_until = NULL,"
	       " started_at = NULL"
	       " WHERE id = ? AND epoch = ? AND status = 'running'"
	       " AND cancel_at IS NULL",
	.args = id_epoch_args,
};

static const struct field renew_args[] = { A(owner), A(lease), A(id), A(epoch),
	FIELD_END };
static const struct stmt renew = {
	.name = "queue_renew",
	.sql = "UPDATE deployment SET owner = ?,"
	       " lease_until = NOW(3) + INTERVAL ? SECOND"
	       " WHERE id = ? AND epoch = ? AND status = 'running'",
	.args = renew_args,
};

#define HELD                                                                   \
	"SELECT id, epoch, owner, cancel_at IS NOT NULL AS cancel"             \
	" FROM deployment WHERE status = 'running' AND "
static const struct stmt held = {
	.name = "queue_held",
	.sql = HELD "owner = ?",
	.args = owner_args,
	.row = held_row,
	.rowsize = sizeof(struct held),
};
static const struct stmt held_by_runner = {
	.name = "queue_held_by_runner",
	.sql = HELD "runner = ? AND lease_until >= NOW(3)",
	.args = runner_args,
	.row = held_row,
	.rowsize = sizeof(struct held),
};

static const struct field commit_args[] = { A(branch), A(hash), A(message),
	A(id), A(epoch), FIELD_END };
static const struct stmt commit = {
	.name = "queue_commit",
	.sql = "UPDATE deployment SET branch = COALESCE(?, branch),"
	       " commit_hash = ?, commit_message = ?"
	       " WHERE id = ? AND epoch = ? AND status = 'running'",
	.args = commit_args,
};

static const struct field event_args[] = { E(status), E(exit_code), E(signal),
	E(started_at), E(finished_at), E(log_offset), E(log_length),
	E(deployment_id), E(position), E(epoch), FIELD_END };
static const struct stmt event = {
	.name = "queue_step",
	.sql = "UPDATE deployment_step s"
	       " JOIN deployment d ON d.id = s.deployment_id"
	       " SET s.status = ?, s.exit_code = COALESCE(?, s.exit_code),"
	       " s.`signal` = COALESCE(?, s.`signal`),"
	       " s.started_at = COALESCE(?, s.started_at),"
	       " s.finished_at = COALESCE(?, s.finished_at),"
	       " s.log_offset = COALESCE(?, s.log_offset),"
	       " s.log_length = COALESCE(?, s.log_length)"
	       " WHERE s.deployment_id = ? AND s.position = ?"
	       " AND d.epoch = ? AND d.status = 'running'",
	.args = event_args,
};
static const struct field end_args[] = { A(status), A(reason), A(detail),
	A(log_size), A(finished_at), A(id), A(epoch), FIELD_END };
static const struct stmt end = {
	.name = "queue_end",
	.sql = "UPDATE deployment SET status = ?, reason = ?, detail = ?,"
	       " log_size = ?, lease_until = NULL,"
	       " finished_at = GREATEST(COALESCE(?, NOW(3)), started_at)"
	       " WHERE id = ? AND epoch = ? AND status = 'running'",
	.args = end_args,
};
static const struct field ended_args[] = { A(id), A(epoch), A(status),
	FIELD_END };
static const struct stmt ended = {
	.name = "queue_ended",
	.sql = "SELECT COUNT(*) AS n FROM deployment"
	       " WHERE id = ? AND epoch = ? AND status = ?",
	.args = ended_args,
	.row = found_row,
	.rowsize = sizeof(struct found),
};
static const struct field end_steps_args[] = { A(finished_at), A(status), A(id),
	FIELD_END };
static const struct stmt end_steps = {
	.name = "queue_end_steps",
	.sql = "UPDATE deployment_step SET finished_at ="
	       " IF(status = 'running', GREATEST(COALESCE(?, NOW(3)),"
	       " COALESCE(started_at, NOW(3))), NULL),"
	       " status = IF(status = 'pending', 'skipped',"
	       " IF(? = 'canceled', 'canceled', 'interrupted'))"
	       " WHERE deployment_id = ? AND status IN ('pending', 'running')",
	.args = end_steps_args,
};

static const struct stmt expired = {
	.name = "queue_expired",
	.sql = "SELECT id, epoch FROM deployment WHERE status = 'running'"
	       " AND lease_until < NOW(3) ORDER BY id LIMIT 16",
	.row = candidate_row,
	.rowsize = sizeof(struct candidate),
};
static const struct field expire_args[] = { A(detail), A(id), A(epoch),
	FIELD_END };
/* The epoch moves on, so that the silent holder is fenced when it speaks. */
static const struct stmt expire = {
	.name = "queue_expire",
	.sql = "UPDATE deployment SET status = 'interrupted',"
	       " reason = 'runner_lost', detail = ?, epoch = epoch + 1,"
	       " lease_until = NULL, finished_at = NOW(3), log_size ="
	       " (SELECT COALESCE(MAX(c.start + c.length), 0)"
	       " FROM log_chunk c WHERE c.deployment_id = deployment.id)"
	       " WHERE id = ? AND epoch = ? AND status = 'running'"
	       " AND lease_until < NOW(3)",
	.args = expire_args,
};

static const struct stmt old_tokens = {
	.name = "queue_old_tokens",
	.sql = "SELECT COUNT(*) AS n FROM (SELECT 1 FROM commit_token"
	       " WHERE created_at < NOW(3) - INTERVAL 1 DAY LIMIT 1) t",
	.row = found_row,
	.rowsize = sizeof(struct found),
};
/* Each transaction of everybody leaves one, so more of them go at once. */
static const struct stmt tidy_tokens = {
	.name = "queue_tidy_tokens",
	.sql = "DELETE FROM commit_token"
	       " WHERE created_at < NOW(3) - INTERVAL 1 DAY"
	       " ORDER BY created_at LIMIT 5000",
};
static const struct stmt *const queue_stmts[] = {
	&candidates,
	&take,
	&mine,
	&load,
	&load_steps,
	&release,
	&renew,
	&held,
	&held_by_runner,
	&commit,
	&event,
	&end,
	&ended,
	&end_steps,
	&expired,
	&expire,
	&old_tokens,
	&tidy_tokens,
	NULL,
};

const struct store queue_store = {
	.stmts = queue_stmts,
};

static const struct err *
no_longer(const char *call, int64_t id)
{
	return err_new(ERR_PRECONDITION,
	    "%s: deployment %lld is no longer held", call, (long long)id);
}

/* A write under an epoch: no row means that another has it. */
static const struct err *
fenced_exec(struct db *db, const struct stmt *s, const void *args, int64_t id)
{
	const struct err *e;
	struct db_done done;

	if ((e = db_exec(db, s, args, &done)) != NULL)
		return e;
	return done.affected == 0 ? no_longer(s->name, id) : NULL;
}

/* Whether this try took it. An answer that was lost is looked up; where the row
 * does not have it either it may be on its way yet, and the error stands. */
static const struct err *
try(struct db *db, struct arena *a, struct queue_args *args, bool *won)
{
	const struct err *e, *late;
	struct db_done done;
	struct queue_args key;
	struct found found;

	*won = false;
	args->new_epoch = args->epoch + 1;
	e = db_exec(db, &take, args, &done);
	if (e == NULL) {
		*won = done.affected == 1;
		return NULL;
	}
	if (e->code == ERR_CONFLICT && e->sys == DB_DUPLICATE)
		return NULL; /* the project became busy */
	if (e->code != ERR_UNAVAILABLE)
		return e;
	key = *args;
	key.epoch = args->new_epoch;
	late = e->sys == DB_UNKNOWN ? e : NULL;
	if ((e = db_row(db, a, &mine, &key, &found)) != NULL)
		return e;
	*won = found.n == 1;
	return *won ? NULL : late;
}

static bool
is_avoided(const struct queue_claimer *by, int64_t id)
{
	size_t i;

	for (i = 0; i < by->navoid && by->avoid[i] != id; i++)
		;
	return i < by->navoid;
}

/* The first candidate at first; after a lost race any, so that many runners
 * do not run into each other again. */
static const struct err *
take_one(struct db *db, struct arena *a, const struct queue_claimer *by,
    struct queue_args *args)
{
	const struct err *e;
	const struct candidate *c;
	struct list list;
	size_t at = 0, left, tried;
	bool won;
	int round;

	for (round = 0; round < ROUNDS; round++) {
		e = db_rows(db, a, &candidates, NULL, &list);
		if (e != NULL)
			return e;
		tried = 0;
		if (round > 0)
			at = (size_t)arc4random_uniform((uint32_t)list.n);
		for (left = list.n; left > 0; left--, at++) {
			c = (const struct candidate *)list.items + at % list.n;
			if (is_avoided(by, c->id))
				continue;
			tried++;
			args->id = c->id;
			args->epoch = c->epoch;
			if ((e = try(db, a, args, &won)) != NULL || won)
				return e;
		}
		if (tried == 0)
			break;
	}
	return err_new(ERR_NOTFOUND, "nothing to claim");
}

const struct err *
queue_claim(struct db *db, struct arena *a, const struct queue_claimer *by,
    struct claim *out)
{
	struct queue_args args = { .owner = by->owner,
		.runner = by->runner,
		.lease = by->lease };
	const struct err *e;

	(void)memset(out, 0, sizeof(*out));
	if ((e = take_one(db, a, by, &args)) != NULL)
		return e;
	if ((e = db_row(db, a, &load, &args, out)) != NULL)
		return e;
	if (out->epoch != args.new_epoch)
		return err_new(ERR_PRECONDITION,
		    "deployment %lld: taken away at once", (long long)args.id);
	return db_rows(db, a, &load_steps, &args, &out->steps);
}

const struct err *
queue_renew(struct db *db, int64_t id, int64_t epoch, const char *owner,
    int64_t lease)
{
	const struct queue_args args = { .id = id,
		.epoch = epoch,
		.owner = owner,
		.lease = lease };

	return fenced_exec(db, &renew, &args, id);
}

const struct err *
queue_held(struct db *db, struct arena *a, const char *owner, struct list *out)
{
	const struct queue_args args = { .owner = owner };

	return db_rows(db, a, &held, &args, out);
}

const struct err *
queue_held_by_runner(struct db *db, struct arena *a, const char *runner,
    struct list *out)
{
	const struct queue_args args = { .runner = runner };

	return db_rows(db, a, &held_by_runner, &args, out);
}

static const struct err *
commit_body(struct db *db, void *context)
{
	const struct queue_args *args = context;
	const struct err *e;

	if ((e = fenced_exec(db, &commit, args, args->id)) != NULL)
		return e;
	return report_want(db, args->id, "running");
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

	if (!report_wanted(&db_settings(db)->gitserver))
		return fenced_exec(db, &commit, &args, id);
	return db_transaction(db, commit_body, &args);
}

const struct err *
queue_step(struct db *db, const struct queue_step_event *what)
{
	return fenced_exec(db, &event, what, what->deployment_id);
}

/* One deployment's end, and that of its steps. */
struct ending {
	const struct stmt *how;
	struct queue_args args;
	bool done;
};

static const struct err *
end_body(struct db *db, void *context)
{
	struct ending *x = context;
	const struct err *e;
	struct db_done done;

	x->done = false;
	if ((e = db_exec(db, x->how, &x->args, &done)) != NULL)
		return e;
	if (done.affected == 0)
		return NULL;
	x->done = true;
	if ((e = db_exec(db, &end_steps, &x->args, NULL)) != NULL)
		return e;
	return report_want(db, x->args.id,
	    report_state(x->args.status, x->args.reason));
}

/* Who deletes a project cancels what is pending then: its row is held, so that
 * this one is not missed. */
static const struct err *
release_body(struct db *db, void *context)
{
	struct ending *x = context;
	struct arena *a = arena_open(SMALL_ARENA);
	struct db_done done = { .affected = 0 };
	const struct err *e;

	x->args.reason = "canceled_by_user";
	x->args.detail = "It was canceled before it started.";
	e = deployment_hold_project_of(db, a, x->args.id);
	if (e == NULL) {
		e = db_exec(db, &release, &x->args, &done);
	} else if (e->code == ERR_NOTFOUND) {
		x->args.reason = "project_deleted";
		x->args.detail = "The project was deleted before it started.";
		e = NULL;
	}
	x->done = done.affected != 0;
	if (e == NULL && !x->done)
		e = end_body(db, x);
	arena_close(a);
	return e;
}

const struct err *
queue_release(struct db *db, int64_t id, int64_t epoch)
{
	struct ending x = { .how = &end,
		.args = { .id = id, .epoch = epoch, .status = "canceled" } };
	const struct err *e;

	if ((e = db_transaction(db, release_body, &x)) != NULL || x.done)
		return e;
	return no_longer("queue_release", id);
}

const struct err *
queue_end(struct db *db, const struct queue_end *what)
{
	struct ending x = { .how = &end,
		.args = { .id = what->id,
		    .epoch = what->epoch,
		    .status = what->status,
		    .reason = what->reason,
		    .detail = what->detail,
		    .log_size = what->log_size,
		    .finished_at = what->finished_at } };
	const struct err *e;
	struct arena *a;
	struct found found = { .n = 0 };

	if ((e = db_transaction(db, end_body, &x)) != NULL || x.done)
		return e;
	/* an earlier call may have done it and lost the answer */
	a = arena_open(SMALL_ARENA);
	e = db_row(db, a, &ended, &x.args, &found);
	arena_close(a);
	if (e == NULL && found.n == 0)
		e = no_longer("queue_end", what->id);
	return e;
}

const struct err *
queue_expire(struct db *db, int64_t *out)
{
	struct ending x = { .how = &expire };
	const struct err *e;
	const struct candidate *c;
	struct list list;
	struct arena *a;
	size_t i;

	*out = 0;
	a = arena_open(SMALL_ARENA);
	if ((e = db_rows(db, a, &expired, NULL, &list)) != NULL)
		goto out;
	c = list.items;
	for (i = 0; i < list.n; i++) {
		x.args = (struct queue_args){ .id = c[i].id,
			.epoch = c[i].epoch,
			.status = "interrupted",
			.detail = "The runner has not been heard of since its "
				  "lease ran out." };
		if ((e = db_transaction(db, end_body, &x)) != NULL)
			goto out;
		*out += x.done;
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
	struct found found;

	e = db_row(db, a, &old_tokens, NULL, &found);
	if (e == NULL && found.n > 0)
		e = db_exec(db, &tidy_tokens, NULL, NULL);
	arena_close(a);
	return e;
}
