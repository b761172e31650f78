/* SPDX-License-Identifier: ISC */
#include "store/claim.h"

#include <stdlib.h>
#include <string.h>

#include "store/lock.h"
#include "store/member.h"
#include "store/move.h"
#include "store/notice.h"
#include "store/page.h"
#include "store/projectdir.h"
#include "store/queue.h"
#include "store/runner.h"
#include "store/store.h"

#define CANDIDATES 64 /* at a time */
#define PAGES 64      /* of candidates, if those before cannot start */
#define ROUNDS 8      /* attempts before a claim gives up */

/* Arguments of all statements here. */
struct claim_args {
	int64_t id;
	int64_t epoch;
	const char *ids; /* a JSON array of numbers */
	const char *owner;
	const char *runner;
	const char *labels;
};

#define A(m) FIELD(struct claim_args, m, 0, .doc = NULL)
#define C(m) FIELD(struct claim, m, 0, .doc = NULL)
#define S(m) FIELD(struct deployment_step, m, 0, .doc = NULL)

#define IDS "JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$')) j"

#define R(m) FIELD(struct claim_candidate, m, 0, .doc = NULL)
static const struct field candidate_row[] = { R(id), R(epoch), R(repository),
	R(project_id), R(is_stuck), FIELD_END };
static const struct field candidates_args[] = { A(runner), A(labels), A(id),
	A(runner), A(labels), FIELD_END };
/* Those of the rows `q` (project_id, id) that can start here, and those that are
 * stuck, because others of their projects may pass them.  The order of the joins
 * and the index of the queue are fixed here: with some statistics the optimizer
 * reads the queue once for each project. */
/* clang-format off */
#define QUEUE " FORCE INDEX (deployment_turn)"
#define REPOSITORY							\
	"IF((d.checkout = 'none' AND NOT " CLAIM_HEAD_ONLY ")"		\
	" OR d.turn = 0, '', p.repository) AS repository"
/* A deployment that waits for its Git server keeps its place in the project. */
#define IS_DUE " AND (d.not_before IS NULL OR d.not_before <= NOW(3))"
#define CANDIDATES_OF(q)						\
	"SELECT STRAIGHT_JOIN d.id, d.epoch, " REPOSITORY		\
	", d.project_id, NOT " RUNNER_FITS("?", "?") " AS is_stuck"			\
	" FROM (" q ") q JOIN deployment d ON d.id = q.id"		\
	" JOIN project p ON p.id = q.project_id"			\
	" LEFT JOIN deployment r ON r.running_project = q.project_id"	\
	" LEFT JOIN environment e ON e.id = d.environment_id"		\
	" WHERE r.id IS NULL AND d.id > ?" IS_DUE			\
	" AND (d.turn = 0 OR (NOT " LOCK_APPLIES			\
	" AND NOT EXISTS (SELECT 1 FROM deployment b" QUEUE		\
	" LEFT JOIN environment e ON e.id = b.environment_id"		\
	" WHERE b.status = 'pending' AND b.turn = 0"			\
	" AND b.project_id = d.project_id AND NOT " RUNNER_MISSING ")))" \
	" AND (" RUNNER_FITS("?", "?") " OR " RUNNER_MISSING ")"	\
	" ORDER BY d.id LIMIT 64"
/* clang-format on */

/* The oldest deployment of each idle project, or its oldest rollback. The inner
 * query skips through the index from project to project, however long the queue
 * is; without the status in its GROUP BY, the optimizer prefers to read the whole
 * queue. */
static const struct stmt candidates = {
	.name = "claim_candidates",
	.sql = CANDIDATES_OF(
	    "SELECT project_id, MIN(id) AS id FROM deployment" QUEUE
	    " WHERE status = 'pending' AND turn < 2"
	    " GROUP BY status, turn, project_id UNION " LOCK_PASSERS),
	.args = candidates_args,
	.row = candidate_row,
	.rowsize = sizeof(struct claim_candidate),
};

/* Of projects whose oldest deployment is stuck, the oldest that is not: it is
 * for another environment. */
static const struct field passers_args[] = { A(runner), A(labels), A(ids),
	A(id), A(runner), A(labels), FIELD_END };
static const struct stmt passers = {
	.name = "claim_passers",
	.sql = CANDIDATES_OF(
	    "SELECT STRAIGHT_JOIN d.project_id, MIN(d.id) AS id FROM " IDS
	    " JOIN deployment d FORCE INDEX (deployment_queue)"
	    " ON d.project_id = j.id"
	    " AND d.status = 'pending' AND d.turn < 2"
	    " LEFT JOIN environment e ON e.id = d.environment_id"
	    " WHERE (d.turn = 0 OR NOT " LOCK_APPLIES ")"
	    " AND NOT " RUNNER_MISSING " GROUP BY d.turn, d.project_id"),
	.args = passers_args,
	.row = candidate_row,
	.rowsize = sizeof(struct claim_candidate),
};

/* Without locks and rollbacks, as most of the time: where nothing is bound to a
 * runner, these are the same, for a quarter of the time.  If there are any, it
 * returns one that seems to be stuck.  A query in the condition of an IF would
 * lock what it reads. */
static const struct field plain_args[] = { A(id), FIELD_END };
static const struct stmt plain = {
	.name = "claim_plain",
	.sql = DB_COMPOUND
	"DECLARE is_odd INT; SELECT EXISTS (SELECT 1 FROM deployment" QUEUE
	" WHERE status = 'pending' AND turn = 0)"
	" OR (EXISTS (SELECT 1 FROM deploy_lock)"
	" AND EXISTS (SELECT 1 FROM deployment" QUEUE
	" WHERE status = 'pending' AND turn = 1)) INTO is_odd; IF is_odd THEN"
	" SELECT 0 AS id, 0 AS epoch, '' AS repository,"
	" 0 AS project_id, 1 AS is_stuck;"
	" ELSE SELECT STRAIGHT_JOIN d.id, d.epoch, " REPOSITORY
	", d.project_id,"
	" e.runner IS NOT NULL AS is_stuck"
	" FROM (SELECT project_id, MIN(id) AS id FROM deployment" QUEUE
	" WHERE status = 'pending' AND turn < 2"
	" GROUP BY status, turn, project_id) q"
	" JOIN deployment d ON d.id = q.id"
	" JOIN project p ON p.id = q.project_id"
	" LEFT JOIN deployment r ON r.running_project = q.project_id"
	" LEFT JOIN environment e ON e.id = d.environment_id"
	" WHERE r.id IS NULL AND d.id > ?" IS_DUE " ORDER BY d.id LIMIT 64;"
	" END IF; END",
	.args = plain_args,
	.row = candidate_row,
	.rowsize = sizeof(struct claim_candidate),
	.reads = true,
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
static const struct field load_args[] = { A(id), A(owner), A(id), FIELD_END };
static const struct field claim_row[] = { C(id), C(epoch), C(project_id),
	C(project_name), C(project_dir), C(repository), C(pipeline_name),
	C(environment_name), C(branch), C(tag), C(commit_hash), C(env_vars),
	C(secret_vars), C(timeout_seconds), C(checkout), C(created_by),
	C(read_by), C(is_automatic), C(has_left), C(set_by), C(rollback_to),
	C(head_only), C(on_branch), C(cancel), C(over_deleted), C(deploy_key),
	C(deploy_key_print), C(submodules), C(submodule_repositories),
	C(submodules_by), C(cache_generation), C(notices), C(git_waited),
	C(log_size), FIELD_END };
static const struct field step_row[] = { S(position), S(name), S(script),
	S(directory), S(timeout_seconds), S(run_when), S(may_fail), FIELD_END };
/* clang-format off */
static const struct stmt load = {
	.name = "claim_load",
	.sql = DB_COMPOUND
	    "SELECT d.id, d.epoch, d.project_id, p.name AS project_name,"
	    " p.project_dir, p.repository, l.name AS pipeline_name,"
	    " e.name AS environment_name, d.branch, d.tag, d.commit_hash,"
	    " d.env_vars, d.secret_vars, d.timeout_seconds, d.checkout,"
	    " d.created_by,"
	    " COALESCE(d.read_by, d.created_by) AS read_by,"
	    " d.`trigger` IN ('webhook', 'schedule') AS is_automatic,"
	    " d.read_by IS NOT NULL AND NOT EXISTS (SELECT 1 FROM user u"
	    " WHERE u.id = d.read_by AND " MEMBER_DEPLOYS("d.project_id")
	    ") AS has_left, p.repository_by AS set_by,"
	    " IF(d.`trigger` = 'rollback', d.retry_of, NULL) AS rollback_to,"
	    " IF(" CLAIM_HEAD_ONLY ","
	    " IF(d.when_moved = 'follow', 2, 1), 0) AS head_only,"
	    " d.`trigger` <> 'rollback'"
	    " AND (d.approval IS NOT NULL"
	    " OR COALESCE(JSON_LENGTH(e.branches) + JSON_LENGTH(e.tags), 0)"
	    " > 0) AS on_branch,"
	    " d.cancel_at IS NOT NULL AS cancel,"
	    " EXISTS (SELECT 1 FROM project q WHERE q.valid = 0"
	    " AND " PROJECTDIR_OVERLAP ") AS over_deleted,"
	    " k.sealed AS deploy_key, k.fingerprint AS deploy_key_print,"
	    " p.submodules, p.submodule_repositories,"
	    " p.submodules_by, p.cache_generation, " NOTICE_ANY("d.id")
	    " AS notices,"
	    " IF(" QUEUE_GIT_STILL ", TIMESTAMPDIFF(SECOND, d.git_since,"
	    " NOW(3)), NULL) AS git_waited,"
	    " IF(d.git_since IS NULL, 0, COALESCE((SELECT"
	    " MAX(c.start + c.length) FROM log_chunk c"
	    " WHERE c.deployment_id = d.id), 0)) AS log_size"
	    " FROM deployment d"
	    " JOIN project p ON p.id = d.project_id"
	    " JOIN pipeline l ON l.id = d.pipeline_id"
	    " LEFT JOIN environment e ON e.id = d.environment_id"
	    " LEFT JOIN deploy_key k ON k.project_id = d.project_id"
	    " WHERE d.id = ? AND d.owner = ? AND d.status = 'running';"
	    " SELECT position, name, script, directory, timeout_seconds,"
	    " run_when, may_fail FROM deployment_step WHERE deployment_id = ?"
	    " ORDER BY position; END",
	.args = load_args,
	.row = claim_row,
	.rowsize = sizeof(struct claim),
	.more = step_row,
	.moresize = sizeof(struct deployment_step),
	.reads = true,
};
/* clang-format on */

static const struct stmt *const claim_stmts[] = {
	&candidates,
	&passers,
	&plain,
	&mine,
	&load,
	NULL,
};

const struct store claim_store = {
	.stmts = claim_stmts,
};

/* Candidates, and which of them were claimed. */
struct taking {
	const struct claimer *by;
	bool is_plain; /* the plain statement is enough */
	struct claim_candidate chosen[CLAIM_MAX];
	bool is_ours[CLAIM_MAX];
	size_t n;
	bool is_all; /* there are no others */
};

static bool
is_avoided(const struct claimer *by, int64_t id)
{
	size_t i;

	for (i = 0; i < by->navoid && by->avoid[i] != id; i++)
		;
	return i < by->navoid;
}

/* Adds a number to a list; NULL is an empty one. */
static const char *
ids_add(struct arena *a, const char *ids, int64_t id)
{
	return arena_printf(a, "%s%s%lld", ids == NULL ? "" : ids,
	    ids == NULL ? "" : ",", (long long)id);
}

/* Chooses up to `max` of a page, from `first` on. */
static void
choose_of(struct taking *t, const struct list *page, size_t first, size_t max)
{
	const struct claimer *by = t->by;
	const struct claim_candidate *all = page->items, *c;
	size_t i;

	for (i = 0; i < page->n && t->n < max; i++) {
		c = &all[(first + i) % page->n];
		if (!c->is_stuck && !is_avoided(by, c->id) &&
		    (by->skips == NULL ||
			!by->skips(by->context, c, t->chosen, t->n)))
			t->chosen[t->n++] = *c;
	}
}

/* Orders candidates by age. */
static int
older(const void *a, const void *b)
{
	const int64_t x = ((const struct claim_candidate *)a)->id;
	const int64_t y = ((const struct claim_candidate *)b)->id;

	return x < y ? -1 : x > y;
}

/* Adds those of `more` that are not in the page. */
static void
page_merge(struct arena *a, struct list *page, const struct list *more)
{
	struct claim_candidate *all, *last;
	const size_t n = page->n + more->n;
	size_t i;

	all = arena_alloc(a, n, sizeof(*all));
	(void)memcpy(all, page->items, page->n * sizeof(*all));
	(void)memcpy(all + page->n, more->items, more->n * sizeof(*all));
	qsort(all, n, sizeof(*all), older);
	for (last = all, i = 1; i < n; i++)
		if (all[i].id != last->id)
			*++last = all[i];
	*page = (struct list){ .items = all, .n = (size_t)(last - all) + 1 };
}

/* Adds to a page the deployments that pass those which are stuck. */
static const struct err *
page_complete(struct db *db, struct arena *a, const struct claim_args *args,
    struct list *page)
{
	const struct claim_candidate *c = page->items;
	struct claim_args more_args = *args;
	const struct err *e;
	struct list more;
	size_t i;

	for (i = 0; i < page->n; i++)
		if (c[i].is_stuck)
			more_args.ids = ids_add(a, more_args.ids,
			    c[i].project_id);
	if (more_args.ids == NULL)
		return NULL;
	more_args.ids = arena_printf(a, "[%s]", more_args.ids);
	more_args.id = 0;
	e = db_rows(db, a, &passers, &more_args, &more);
	if (e == NULL && more.n > 0)
		page_merge(a, page, &more);
	return e;
}

static bool
has_stuck(const struct list *page)
{
	const struct claim_candidate *c = page->items;
	size_t i;

	for (i = 0; i < page->n && !c[i].is_stuck; i++)
		;
	return i < page->n;
}

/* Reads a page with the plain statement as long as its result is the same. */
static const struct err *
candidates_read(struct db *db, struct arena *a, bool *is_plain,
    const struct claim_args *args, struct list *out)
{
	const struct err *e;

	if (*is_plain) {
		if ((e = db_rows(db, a, &plain, args, out)) != NULL ||
		    !has_stuck(out))
			return e;
		*is_plain = false;
	}
	return db_rows(db, a, &candidates, args, out);
}

/* Chooses the oldest that can start, however many before them cannot; after a
 * lost race others, so that many runners do not collide again. */
static const struct err *
choose(struct db *db, struct arena *a, struct taking *t, int round, size_t max)
{
	struct claim_args args = { .id = 0,
		.runner = t->by->runner,
		.labels = t->by->labels };
	const struct claim_candidate *last;
	const struct err *e;
	struct list page;
	size_t first = 0;
	bool is_last;
	int i;

	t->n = 0;
	for (i = 0; i < PAGES; i++) {
		if ((e = candidates_read(db, a, &t->is_plain, &args, &page)) !=
		    NULL)
			return e;
		is_last = page.n < CANDIDATES;
		last = page.items;
		if (!is_last)
			args.id = last[page.n - 1].id;
		if ((e = page_complete(db, a, &args, &page)) != NULL)
			return e;
		if (round > 0)
			first = arc4random_uniform((uint32_t)page.n + 1);
		choose_of(t, &page, first, max);
		t->is_all = is_last && t->n < max;
		if (t->n == max || is_last)
			break;
	}
	return NULL;
}

static const struct err *
take(struct db *db, struct taking *t, size_t i)
{
	const struct move taken = { .id = t->chosen[i].id,
		.epoch = t->chosen[i].epoch,
		.from = STATE_PENDING,
		.to = STATE_RUNNING,
		.owner = t->by->owner,
		.runner = t->by->runner,
		.labels = t->by->labels,
		.lease = t->by->lease };
	const struct err *e;
	int64_t n;

	e = move_deployment(db, &taken, &n);
	t->is_ours[i] = e == NULL && n == 1;
	if (e != NULL && e->code == ERR_CONFLICT && e->sys == DB_DUPLICATE)
		return NULL; /* the project has become busy */
	return e;
}

static const struct err *
take_body(struct db *db, void *context)
{
	struct taking *t = context;
	const struct err *e = NULL;
	size_t i;

	for (i = 0; e == NULL && i < t->n; i++)
		e = take(db, t, i);
	return e;
}

/* Takes a single one without a transaction. If the response was lost, the row
 * is read again; if it does not show the claim either, the write may still be
 * pending, and the error is returned. */
static const struct err *
take_one(struct db *db, struct arena *a, struct taking *t)
{
	const struct claim_args key = { .id = t->chosen[0].id,
		.epoch = t->chosen[0].epoch + 1,
		.owner = t->by->owner };
	const struct err *e, *late;
	struct page_count found;

	if ((e = take(db, t, 0)) == NULL || e->code != ERR_UNAVAILABLE)
		return e;
	late = e->sys == DB_UNKNOWN ? e : NULL;
	if ((e = db_row(db, a, &mine, &key, &found)) != NULL)
		return e;
	t->is_ours[0] = found.n == 1;
	return t->is_ours[0] ? NULL : late;
}

/* Reads those that were claimed, each by its id: a list of ids would be a
 * temporary table to MariaDB, which takes longer than several queries. */
static const struct err *
load_claims(struct db *db, struct arena *a, const struct taking *t,
    struct list *out)
{
	struct claim *claims = arena_alloc(a, t->n, sizeof(*claims));
	struct claim_args args = { .owner = t->by->owner };
	const struct err *e = NULL;
	struct claim *c;
	size_t i;

	*out = (struct list){ .items = claims };
	for (i = 0; e == NULL && i < t->n; i++) {
		if (!t->is_ours[i])
			continue;
		args.id = t->chosen[i].id;
		c = &claims[out->n];
		e = db_row_more(db, a, &load, &args, c, &c->steps);
		if (e == NULL)
			out->n++;
		else if (e->code == ERR_NOTFOUND)
			e = NULL;
	}
	if (e == NULL && out->n == 0)
		e = err_new(ERR_PRECONDITION,
		    "the claimed deployments were taken away at once");
	return e;
}

static bool
has_any(const struct taking *t)
{
	size_t i;

	for (i = 0; i < t->n; i++)
		if (t->is_ours[i])
			return true;
	return false;
}

const struct err *
claim_next(struct db *db, struct arena *a, const struct claimer *by, size_t max,
    struct claimed *out)
{
	struct taking t = { .by = by };
	const struct err *e;
	int round;

	*out = (struct claimed){ .is_all = false };
	if (max > CLAIM_MAX)
		max = CLAIM_MAX;
	for (round = 0; round < ROUNDS; round++) {
		/* every time: a lock may be why the round before failed */
		t.is_plain = true;
		if ((e = choose(db, a, &t, round, max)) != NULL)
			return e;
		if (t.n == 0)
			break;
		e = t.n == 1 ? take_one(db, a, &t) :
			       db_transaction(db, take_body, &t);
		if (e != NULL)
			return e;
		out->is_all = t.is_all;
		if (has_any(&t))
			return load_claims(db, a, &t, &out->list);
	}
	return err_new(ERR_NOTFOUND, "nothing to claim");
}
