/* SPDX-License-Identifier: ISC */
#include "queue/claim.h"

#include <stdlib.h>
#include <string.h>

#include "queue/move.h"
#include "queue/stores.h"
#include "store/page.h"
#include "store/runner.h"

#define PAGES 64 /* of candidates, if those before cannot start */
#define ROUNDS 8 /* attempts before a claim gives up */

/* Arguments of all statements here. */
struct claim_args {
	int64_t id;
	int64_t epoch;
	const char *ids; /* a JSON array of numbers */
	const char *owner;
	const char *runner;
	const char *labels;
};

#include "queue/claim.sql.h"

const struct store claim_store = {
	.stmts = claim_stmts,
};

/* Candidates, and which of them were claimed. */
struct claim_round {
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
choose_of(struct claim_round *t, const struct list *page, size_t first,
    size_t max)
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
candidate_compare(const void *a, const void *b)
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
	qsort(all, n, sizeof(*all), candidate_compare);
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
	e = db_rows(db, a, &sql_claim_passers, &more_args, &more);
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
		if ((e = db_rows(db, a, &sql_claim_plain, args, out)) != NULL ||
		    !has_stuck(out))
			return e;
		*is_plain = false;
	}
	return db_rows(db, a, &sql_claim_candidates, args, out);
}

/* Chooses the oldest that can start, however many before them cannot; after a
 * lost race others, so that many runners do not collide again. */
static const struct err *
candidates_choose(struct db *db, struct arena *a, struct claim_round *t,
    int round, size_t max)
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
		is_last = page.n < SQL_CLAIM_PAGE;
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
candidate_take(struct db *db, struct claim_round *t, size_t i)
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
	struct claim_round *t = context;
	const struct err *e = NULL;
	size_t i;

	for (i = 0; e == NULL && i < t->n; i++)
		e = candidate_take(db, t, i);
	return e;
}

/* Takes a single one without a transaction. If the response was lost, the row
 * is read again; if it does not show the claim either, the write may still be
 * pending, and the error is returned. */
static const struct err *
take_one(struct db *db, struct arena *a, struct claim_round *t)
{
	const struct claim_args key = { .id = t->chosen[0].id,
		.epoch = t->chosen[0].epoch + 1,
		.owner = t->by->owner };
	const struct err *e, *late;
	struct page_count found;

	if ((e = candidate_take(db, t, 0)) == NULL ||
	    e->code != ERR_UNAVAILABLE)
		return e;
	late = e->sys == DB_UNKNOWN ? e : NULL;
	if ((e = db_row(db, a, &sql_claim_mine, &key, &found)) != NULL)
		return e;
	t->is_ours[0] = found.n == 1;
	return t->is_ours[0] ? NULL : late;
}

/* Reads those that were claimed, each by its id: a list of ids would be a
 * temporary table to MariaDB, which takes longer than several queries. */
static const struct err *
load_claims(struct db *db, struct arena *a, const struct claim_round *t,
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
		e = db_row_more(db, a, &sql_claim_load, &args, c, &c->steps);
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
has_any(const struct claim_round *t)
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
	struct claim_round t = { .by = by };
	const struct err *e;
	int round;

	*out = (struct claimed){ .is_all = false };
	if (max > CLAIM_MAX)
		max = CLAIM_MAX;
	for (round = 0; round < ROUNDS; round++) {
		/* every time: a lock may be why the round before failed */
		t.is_plain = true;
		if ((e = candidates_choose(db, a, &t, round, max)) != NULL)
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
