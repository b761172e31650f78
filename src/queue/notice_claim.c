/* SPDX-License-Identifier: ISC */
/* Claims of notices that are due. */
#include <stdlib.h>
#include <string.h>

#include "core/buf.h"
#include "queue/notice.h"
#include "queue/stores.h"
#include "store/notifier.h"

#define SMALL_ARENA 4096
#define IDS_MAX 16384
#define ROUNDS 16 /* attempts before a claim gives up */

/* Arguments of all statements here. */
struct claim_args {
	int64_t id;
	int64_t notifier_id;
	int64_t seconds;
	const char *ids; /* a list in JSON */
};
struct number {
	int64_t n;
};

struct candidate {
	int64_t id;
	int64_t notifier_id;
	int64_t rank;
};

/* What became of the last message of a notifier. */
enum rank { RANK_DELIVERED, RANK_NEW, RANK_FAILED, RANK__MAX };

#include "queue/notice_claim.sql.h"

_Static_assert(SQL_RANK_FAILED == (int)RANK_FAILED, "see notice_claim.sql");

const struct store notice_claim_store = {
	.stmts = notice_claim_stmts,
};

/* One notice to claim, for a transaction. */
struct taking {
	struct arena *a;
	struct claim_args args;
	struct db_done done;
};

/* Others that send for the same notifier wait here, so that only one of its
 * notices is claimed. */
static const struct err *
take_body(struct db *db, void *context)
{
	struct taking *t = context;
	const struct err *e;

	if ((e = notifier_hold(db, t->a, t->args.notifier_id)) != NULL)
		return e;
	return db_exec(db, &sql_notice_take, &t->args, &t->done);
}

/* A list for a statement. */
static const char *
ids_of(struct arena *a, const int64_t *ids, size_t n)
{
	const char *out;
	struct buf b;
	size_t i;

	buf_init(&b, IDS_MAX);
	for (i = 0; i < n; i++)
		buf_printf(&b, "%c%lld", i == 0 ? '[' : ',', (long long)ids[i]);
	buf_puts(&b, "]");
	out = arena_strdup(a, b.data);
	buf_release(&b);
	return out;
}

static const struct err *
load_one(struct db *db, struct arena *a, int64_t id, struct notice *out)
{
	const struct claim_args args = { .ids = ids_of(a, &id, 1) };

	return db_row(db, a, &sql_notice_load, &args, out);
}

const struct err *
notice_claim_mail(struct db *db, struct arena *a, int64_t seconds,
    struct notice *out)
{
	struct taking t = { .a = a, .args = { .seconds = seconds } };
	const struct candidate *found;
	const struct err *e;
	struct list list;
	int round;
	size_t i;

	(void)memset(out, 0, sizeof(*out));
	for (round = 0; round < ROUNDS; round++) {
		if ((e = db_rows(db, a, &sql_notice_mails, NULL, &list)) !=
		    NULL)
			return e;
		if (list.n == 0)
			break;
		found = list.items;
		for (i = 0; i < list.n; i++) {
			t.args.id = found[i].id;
			t.args.notifier_id = found[i].notifier_id;
			if ((e = db_transaction(db, take_body, &t)) != NULL)
				return e;
			if (t.done.affected > 0)
				return load_one(db, a, t.args.id, out);
		}
	}
	return err_new(ERR_NOTFOUND, "no notice to send");
}

/* Candidates to claim in one transaction. */
struct taking_some {
	struct arena *a;
	struct notice_claims *claims;
	struct candidate chosen[NOTICE_CLAIMS];
	size_t n;
};

/* Adds up to `max` candidates from a random place on, so that several
 * senders choose others. */
static void
some_choose(struct taking_some *t, const struct candidate *list, size_t n,
    size_t max)
{
	const size_t start = n > max ? arc4random_uniform((uint32_t)n) : 0;
	size_t i;

	for (i = 0; i < n && i < max; i++)
		t->chosen[t->n++] = list[(start + i) % n];
}

/* Others that send for the same notifiers wait here, as in take_body(). */
static const struct err *
some_body(struct db *db, void *context)
{
	struct taking_some *t = context;
	struct notice_claims *claims = t->claims;
	struct claim_args args = { .seconds = claims->seconds };
	const struct candidate *found;
	int64_t ids[NOTICE_CLAIMS];
	const struct err *e;
	struct list list;
	size_t i;

	claims->n = 0;
	for (i = 0; i < t->n; i++)
		ids[i] = t->chosen[i].notifier_id;
	args.ids = ids_of(t->a, ids, t->n);
	if ((e = db_rows(db, t->a, &sql_notice_hold_some, &args, &list)) !=
	    NULL)
		return e;
	for (i = 0; i < t->n; i++)
		ids[i] = t->chosen[i].id;
	args.ids = ids_of(t->a, ids, t->n);
	if ((e = db_rows(db, t->a, &sql_notice_free_some, &args, &list)) !=
		NULL ||
	    list.n == 0)
		return e;
	found = list.items;
	for (i = 0; i < list.n && i < NOTICE_CLAIMS; i++)
		claims->ids[i] = found[i].id;
	args.ids = ids_of(t->a, claims->ids, i);
	if ((e = db_exec(db, &sql_notice_take_some, &args, NULL)) == NULL)
		claims->n = i;
	return e;
}

const struct err *
notice_claim_some(struct db *db, struct arena *a, struct notice_claims *claims)
{
	struct taking_some t = { .a = a, .claims = claims };
	const struct candidate *found;
	size_t first = 0, last, max;
	const struct err *e;
	struct list list;
	int64_t rank;

	claims->n = 0;
	if ((e = db_rows(db, a, &sql_notice_others, NULL, &list)) != NULL)
		return e;
	found = list.items;
	for (rank = 0; rank < RANK__MAX; rank++, first = last) {
		last = first;
		while (last < list.n && found[last].rank == rank)
			last++;
		max = claims->max - t.n;
		if (rank == RANK_FAILED && max > claims->failing_max)
			max = claims->failing_max;
		some_choose(&t, found + first, last - first, max);
	}
	return t.n == 0 ? NULL : db_transaction(db, some_body, &t);
}

const struct err *
notice_claim_spread(struct db *db, struct arena *a,
    struct notice_claims *claims, bool *is_due)
{
	struct taking_some t = { .a = a, .claims = claims };
	const struct err *e;
	struct list list;

	claims->n = 0;
	*is_due = false;
	if ((e = db_rows(db, a, &sql_notice_spread, NULL, &list)) != NULL)
		return e;
	*is_due = list.n > 0;
	some_choose(&t, list.items, list.n, claims->max);
	return t.n == 0 ? NULL : db_transaction(db, some_body, &t);
}

const struct err *
notice_load(struct db *db, struct arena *a, const struct notice_claims *claims,
    struct list *out)
{
	const struct claim_args args = { .ids = ids_of(a, claims->ids,
					     claims->n) };

	*out = (struct list){ .n = 0 };
	return claims->n == 0 ? NULL :
				db_rows(db, a, &sql_notice_load, &args, out);
}

void
notice_copy(struct arena *a, const struct notice *from, struct notice *to)
{
	const struct field *f;
	struct blob *blob;
	const char **text;

	*to = *from;
	for (f = sql_notice_load.row; f->name != NULL; f++) {
		text = (void *)((char *)to + f->offset);
		blob = (void *)((char *)to + f->offset);
		if ((f->type == F_STR || f->type == F_JSON) && *text != NULL)
			*text = arena_strdup(a, *text);
		else if (f->type == F_BLOB && blob->len > 0)
			blob->data = arena_strndup(a, blob->data, blob->len);
	}
}

static const struct err *
due_read(struct db *db, const struct stmt *how, int64_t ms, int64_t max,
    int64_t *out)
{
	struct arena *a = arena_open(SMALL_ARENA);
	const struct err *e;
	struct number found;

	*out = max;
	e = db_row(db, a, how, NULL, &found);
	arena_close(a);
	if (e != NULL && e->code == ERR_NOTFOUND)
		return NULL;
	if (e == NULL && found.n + ms < max)
		*out = found.n + ms > 0 ? found.n + ms : 0;
	return e;
}

const struct err *
notice_due_mail(struct db *db, int64_t max, int64_t *out)
{
	return due_read(db, &sql_notice_due_mail, 0, max, out);
}

const struct err *
notice_due_other(struct db *db, int64_t max, int64_t *out)
{
	return due_read(db, &sql_notice_due_other, 0, max, out);
}

const struct err *
notice_due_since(struct db *db, int64_t ms, int64_t max, int64_t *out)
{
	return due_read(db, &sql_notice_due_other, ms, max, out);
}
