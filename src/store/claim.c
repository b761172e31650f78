/* SPDX-License-Identifier: ISC */
#include "store/claim.h"

#include <stdlib.h>
#include <string.h>

#include "store/lock.h"
#include "store/move.h"
#include "store/page.h"
#include "store/runner.h"
#include "store/store.h"

#define CANDIDATES 64 /* at a time */
#define PAGES 64      /* of candidates, if those before cannot start */
#define ROUNDS 4      /* attempts before a claim gives up */

/* Arguments of all statements here. */
struct claim_args {
	int64_t id;
	int64_t epoch;
	int64_t new_epoch;
	const char *owner;
	const char *runner;
	const char *labels;
	int64_t lease;
};

struct candidate {
	int64_t id;
	int64_t epoch;
	const char *repository; /* "" if it is not fetched from */
};

#define A(m) FIELD(struct claim_args, m, 0, .doc = NULL)
#define C(m) FIELD(struct claim, m, 0, .doc = NULL)
#define S(m) FIELD(struct deployment_step, m, 0, .doc = NULL)

static const struct field id_args[] = { A(id), FIELD_END };
static const struct field candidate_row[] = {
	FIELD(struct candidate, id, 0, .doc = NULL),
	FIELD(struct candidate, epoch, 0, .doc = NULL),
	FIELD(struct candidate, repository, 0, .doc = NULL),
	FIELD_END,
};

/* The oldest deployment of each idle project, or its oldest rollback. The inner
 * query skips through the index from project to project, however long the queue
 * is; without the status in its GROUP BY, the optimizer prefers to read the whole
 * queue. */
static const struct field candidates_args[] = { A(id), A(runner), A(labels),
	FIELD_END };
static const struct stmt candidates = {
	.name = "claim_candidates",
	.sql = "SELECT d.id, d.epoch,"
	       " IF((d.checkout = 'none' AND NOT " CLAIM_HEAD_ONLY ")"
	       " OR d.turn = 0, '', p.repository)"
	       " AS repository FROM (SELECT project_id, MIN(id) AS id"
	       " FROM deployment WHERE status = 'pending' AND turn < 2"
	       " GROUP BY status, turn, project_id UNION " LOCK_PASSERS ") q"
	       " JOIN deployment d ON d.id = q.id"
	       " JOIN project p ON p.id = q.project_id"
	       " LEFT JOIN deployment r ON r.running_project = q.project_id"
	       " LEFT JOIN environment e ON e.id = d.environment_id"
	       " WHERE r.id IS NULL AND d.id > ?"
	       " AND (d.turn = 0 OR (NOT " LOCK_APPLIES
	       " AND NOT EXISTS (SELECT 1 FROM deployment b"
	       " WHERE b.status = 'pending' AND b.turn = 0"
	       " AND b.project_id = d.project_id)))"
	       " AND " RUNNER_FITS("?", "?") " ORDER BY d.id LIMIT 64",
	.args = candidates_args,
	.row = candidate_row,
	.rowsize = sizeof(struct candidate),
};

static const struct field mine_args[] = { A(id), A(epoch), A(owner),
	FIELD_END };
static const struct stmt mine = {
	.name = "claim_mine",
	.sql = "SELECT COUNT(*) AS n FROM deployment WHERE id = ?"
	       " AND epoch = ? AND owner = ? AND status = 'running'",
	.args = mine_args,
	.row = page_count_row,
	.rowsize = sizeof(struct page_count),
};
static const struct field claim_row[] = { C(id), C(epoch), C(project_id),
	C(project_name), C(project_dir), C(repository), C(pipeline_name),
	C(environment_name), C(branch), C(commit_hash), C(env_vars),
	C(secret_vars), C(timeout_seconds), C(checkout), C(created_by),
	C(head_only), C(on_branch), C(cancel), FIELD_END };
static const struct stmt load = {
	.name = "claim_load",
	.sql =
	    "SELECT d.id, d.epoch, d.project_id, p.name AS project_name,"
	    " p.project_dir, p.repository, l.name AS pipeline_name,"
	    " e.name AS environment_name, d.branch, d.commit_hash, d.env_vars, d.secret_vars,"
	    " d.timeout_seconds, d.checkout, d.created_by,"
	    " " CLAIM_HEAD_ONLY " AS head_only,"
	    " d.`trigger` <> 'rollback'"
	    " AND COALESCE(JSON_LENGTH(e.branches), 0) > 0 AS on_branch,"
	    " d.cancel_at IS NOT NULL AS cancel"
	    " FROM deployment d JOIN project p ON p.id = d.project_id"
	    " JOIN pipeline l ON l.id = d.pipeline_id"
	    " LEFT JOIN environment e ON e.id = d.environment_id"
	    " WHERE d.id = ?",
	.args = id_args,
	.row = claim_row,
	.rowsize = sizeof(struct claim),
};
static const struct field step_row[] = { S(position), S(name), S(script),
	S(timeout_seconds), S(run_when), FIELD_END };
static const struct stmt load_steps = {
	.name = "claim_load_steps",
	.sql = "SELECT position, name, script, timeout_seconds, run_when"
	       " FROM deployment_step WHERE deployment_id = ?"
	       " ORDER BY position",
	.args = id_args,
	.row = step_row,
	.rowsize = sizeof(struct deployment_step),
};

static const struct stmt *const claim_stmts[] = {
	&candidates,
	&mine,
	&load,
	&load_steps,
	NULL,
};

const struct store claim_store = {
	.stmts = claim_stmts,
};

/* Tries to claim the deployment. If the response was lost, the row is read
 * again; if it does not show the claim either, the write may still be pending,
 * and the error is returned. */
static const struct err *
try(struct db *db, struct arena *a, struct claim_args *args, bool *won)
{
	const struct move taken = { .id = args->id,
		.epoch = args->epoch,
		.from = STATE_PENDING,
		.to = STATE_RUNNING,
		.owner = args->owner,
		.runner = args->runner,
		.lease = args->lease };
	const struct err *e, *late;
	struct claim_args key;
	struct page_count found;
	int64_t n;

	*won = false;
	args->new_epoch = args->epoch + 1;
	e = move_deployment(db, &taken, &n);
	if (e == NULL) {
		*won = n == 1;
		return NULL;
	}
	if (e->code == ERR_CONFLICT && e->sys == DB_DUPLICATE)
		return NULL; /* the project has become busy */
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
is_avoided(const struct claimer *by, int64_t id)
{
	size_t i;

	for (i = 0; i < by->navoid && by->avoid[i] != id; i++)
		;
	return i < by->navoid;
}

/* The oldest that can start, however many before them cannot. */
static const struct err *
candidates_find(struct db *db, struct arena *a, const struct claimer *by,
    struct candidate out[CANDIDATES], size_t *n)
{
	struct claim_args args = { .id = 0,
		.runner = by->runner,
		.labels = by->labels };
	const struct candidate *c;
	const struct err *e;
	struct list list;
	size_t i;
	int page;

	*n = 0;
	for (page = 0; page < PAGES; page++) {
		if ((e = db_rows(db, a, &candidates, &args, &list)) != NULL)
			return e;
		c = list.items;
		for (i = 0; i < list.n; i++)
			if (!is_avoided(by, c[i].id) &&
			    (by->skips == NULL ||
				!by->skips(by->context, c[i].id,
				    c[i].repository)))
				out[(*n)++] = c[i];
		if (*n > 0 || list.n < CANDIDATES)
			break;
		args.id = c[list.n - 1].id;
	}
	return NULL;
}

/* Tries the first candidate; after losing a race, a random one, so that many
 * runners do not collide again. */
static const struct err *
take_one(struct db *db, struct arena *a, const struct claimer *by,
    struct claim_args *args)
{
	struct candidate found[CANDIDATES];
	const struct candidate *c;
	const struct err *e;
	size_t at = 0, left, n;
	bool won;
	int round;

	for (round = 0; round < ROUNDS; round++) {
		e = candidates_find(db, a, by, found, &n);
		if (e != NULL)
			return e;
		if (n == 0)
			break;
		if (round > 0)
			at = (size_t)arc4random_uniform((uint32_t)n);
		for (left = n; left > 0; left--, at++) {
			c = &found[at % n];
			args->id = c->id;
			args->epoch = c->epoch;
			if ((e = try(db, a, args, &won)) != NULL || won)
				return e;
		}
	}
	return err_new(ERR_NOTFOUND, "nothing to claim");
}

const struct err *
claim_next(struct db *db, struct arena *a, const struct claimer *by,
    struct claim *out)
{
	struct claim_args args = { .owner = by->owner,
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
		    "deployment %lld was taken away at "
		    "once",
		    (long long)args.id);
	return db_rows(db, a, &load_steps, &args, &out->steps);
}
