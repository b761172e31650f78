/* SPDX-License-Identifier: ISC */
/* Claims of notices that are due. */
#include <stdlib.h>
#include <string.h>

#include "core/buf.h"
#include "store/notice.h"
#include "store/notifier.h"
#include "store/store.h"

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

#define A(m) FIELD(struct claim_args, m, 0)
#define N(m) FIELD(struct notice, m, 0)
#define NULLABLE(m) FIELD(struct notice, m, FIELD_NULL)

static const struct field n_row[] = { FIELD(struct number, n, 0), FIELD_END };
static const struct field id_args[] = { A(id), FIELD_END };

/* While a notice of the same notifier is on its way, others wait. */
#define FREE                                                                   \
	"NOT EXISTS (SELECT 1 FROM notice h"                                   \
	" WHERE h.notifier_id = m.notifier_id AND h.held_until > NOW(3))"
#define WITH_NOTIFIER                                                          \
	" FROM notice m LEFT JOIN notifier n ON n.id = m.notifier_id WHERE "
#define IS_MAIL "(m.notifier_id = 0 OR COALESCE(n.kind = 'mail', 0))"
struct candidate {
	int64_t id;
	int64_t notifier_id;
	int64_t rank;
};
static const struct field candidate_row[] = {
	FIELD(struct candidate, id, 0),
	FIELD(struct candidate, notifier_id, 0),
	FIELD(struct candidate, rank, 0),
	FIELD_END,
};
/* What became of the last message of a notifier. */
enum rank { RANK_DELIVERED, RANK_NEW, RANK_FAILED, RANK__MAX };
#define RANK "IF(n.last_error IS NOT NULL, 2, n.last_delivered_at IS NULL)"
/* One of each notifier: however many one has, the others come first. */
/* clang-format off */
#define CANDIDATES(of)							\
	"SELECT MIN(m.id) AS id, m.notifier_id,"			\
	" MAX(" RANK ") AS `rank`"					\
	WITH_NOTIFIER "m.next_at <= NOW(3) AND " of " AND " FREE	\
	" GROUP BY m.notifier_id ORDER BY `rank`, MIN(m.next_at), id"
/* The first few of each rank: those that stand apart from the others by their
 * project, by their host, or by both and their time.  In each, they count from
 * both ends, so that a receiver is not behind thousands that are alike. */
#define END_OF(what, order)						\
	"ROW_NUMBER() OVER (PARTITION BY f.`rank`" what			\
	" ORDER BY f.due" order ", f.id" order ")"
#define NEAR_IN(what)							\
	"LEAST(" END_OF(what, "") ", " END_OF(what, " DESC") ")"
#define PLACE_BY(what)							\
	"ROW_NUMBER() OVER (PARTITION BY d.`rank` ORDER BY " what	\
	" d.in_project * d.in_host * d.in_time, d.id DESC)"
#define SPREAD(of)							\
	"SELECT s.id, s.notifier_id, s.`rank` FROM"			\
	" (SELECT d.id, d.notifier_id, d.`rank`, LEAST("		\
	PLACE_BY("d.in_project,") ", " PLACE_BY("d.in_host,") ", "	\
	PLACE_BY("") ") AS place FROM"					\
	" (SELECT f.id, f.notifier_id, f.`rank`, "			\
	NEAR_IN(", f.project_id") " AS in_project, "			\
	NEAR_IN(", f.host") " AS in_host, " NEAR_IN("") " AS in_time"	\
	" FROM (SELECT MIN(m.id) AS id, m.notifier_id,"			\
	" MAX(" RANK ") AS `rank`, MIN(m.next_at) AS due,"		\
	" MAX(m.project_id) AS project_id,"				\
	" MAX(CRC32(SUBSTRING_INDEX(n.target, '/', 3))) AS host"	\
	WITH_NOTIFIER "m.next_at <= NOW(3) AND " of " AND " FREE	\
	" GROUP BY m.notifier_id) f) d) s"				\
	" WHERE s.`rank` < 2 OR s.place = 1"				\
	" ORDER BY s.place, s.`rank`, s.id DESC"
#define DUE(of)								\
	"SELECT TIMESTAMPDIFF(MICROSECOND, NOW(3),"			\
	" m.next_at) DIV 1000 AS n" WITH_NOTIFIER			\
	"m.next_at IS NOT NULL AND " of " AND " FREE			\
	" ORDER BY m.next_at LIMIT 1"
/* clang-format on */
static const struct stmt mails = {
	.name = "notice_mails",
	.sql = CANDIDATES(IS_MAIL) " LIMIT 4",
	.row = candidate_row,
	.rowsize = sizeof(struct candidate),
};
static const struct stmt others = {
	.name = "notice_others",
	.sql = CANDIDATES("NOT " IS_MAIL) " LIMIT 1024",
	.row = candidate_row,
	.rowsize = sizeof(struct candidate),
};
static const struct stmt spread = {
	.name = "notice_spread",
	.sql = SPREAD("NOT " IS_MAIL) " LIMIT 12",
	.row = candidate_row,
	.rowsize = sizeof(struct candidate),
};
static const struct stmt due_mail = {
	.name = "notice_due_mail",
	.sql = DUE(IS_MAIL),
	.row = n_row,
	.rowsize = sizeof(struct number),
};
static const struct stmt due_other = {
	.name = "notice_due_other",
	.sql = DUE("NOT " IS_MAIL),
	.row = n_row,
	.rowsize = sizeof(struct number),
};
static const struct field take_args[] = { A(seconds), A(seconds), A(id),
	FIELD_END };
static const struct stmt take = {
	.name = "notice_take",
	.sql = "UPDATE notice m SET attempts = attempts + 1,"
	       " next_at = NOW(3) + INTERVAL ? SECOND,"
	       " held_until = NOW(3) + INTERVAL ? SECOND"
	       " WHERE id = ? AND next_at <= NOW(3) AND " FREE,
	.args = take_args,
};

#define IDS "JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$')) j"
static const struct field some_args[] = { A(ids), FIELD_END };
static const struct field hold_row[] = {
	FIELD(struct candidate, notifier_id, 0),
	FIELD_END,
};
/* In the order of their ids, so that two senders do not wait for each other. */
static const struct stmt hold_some = {
	.name = "notice_hold_some",
	.sql = "SELECT n.id AS notifier_id FROM notifier n WHERE n.id IN"
	       " (SELECT j.id FROM " IDS ") ORDER BY n.id FOR UPDATE",
	.args = some_args,
	.row = hold_row,
	.rowsize = sizeof(struct candidate),
};
static const struct stmt free_some = {
	.name = "notice_free_some",
	.sql = "SELECT m.id, m.notifier_id, " RANK " AS `rank` FROM " IDS
	       " JOIN notice m ON m.id = j.id"
	       " LEFT JOIN notifier n ON n.id = m.notifier_id"
	       " WHERE m.next_at <= NOW(3) AND " FREE " ORDER BY `rank`, m.id",
	.args = some_args,
	.row = candidate_row,
	.rowsize = sizeof(struct candidate),
};
static const struct field take_some_args[] = { A(ids), A(seconds), A(seconds),
	FIELD_END };
static const struct stmt take_some = {
	.name = "notice_take_some",
	.sql = "UPDATE " IDS " JOIN notice m ON m.id = j.id"
	       " SET m.attempts = m.attempts + 1,"
	       " m.next_at = NOW(3) + INTERVAL ? SECOND,"
	       " m.held_until = NOW(3) + INTERVAL ? SECOND",
	.args = take_some_args,
};

static const struct field notice_row[] = { N(id), N(message_id), N(notifier_id),
	N(event), NULLABLE(text), N(attempts), N(age), N(created_at),
	N(held_until), NULLABLE(kind), NULLABLE(target),
	NULLABLE(notifier_project_id), NULLABLE(secret), NULLABLE(old_secret),
	NULLABLE(last_error), NULLABLE(email), NULLABLE(project_id),
	NULLABLE(project), NULLABLE(environment_id), NULLABLE(environment),
	NULLABLE(environment_url), NULLABLE(deployment_id),
	NULLABLE(pipeline_id), NULLABLE(pipeline), NULLABLE(branch),
	NULLABLE(tag), NULLABLE(commit_hash), NULLABLE(commit_message),
	NULLABLE(env_vars_sent), NULLABLE(status), NULLABLE(reason),
	NULLABLE(detail), NULLABLE(warnings), NULLABLE(trigger), NULLABLE(user),
	FIELD_END };
/* A message that is late tells the state at the time of its event. */
/* clang-format off */
#define THEN_STATUS							\
	"CASE m.event WHEN 'started' THEN 'running'"			\
	" WHEN 'waiting_for_approval' THEN 'pending' ELSE d.status END"
#define IF_ENDED(column)						\
	"IF(m.event IN ('started', 'waiting_for_approval'), NULL, " column ")"
/* clang-format on */
static const struct stmt load = {
	.name = "notice_load",
	.sql =
	    "SELECT m.id, m.message_id, m.notifier_id, m.event, m.text,"
	    " m.attempts, TIMESTAMPDIFF(SECOND, m.created_at, NOW(3)) AS"
	    " age, m.created_at, m.held_until,"
	    " IF(m.notifier_id = 0, 'mail', n.kind) AS kind, n.target,"
	    " n.project_id AS notifier_project_id,"
	    " n.secret, IF(n.rotated_at > NOW(3) - INTERVAL 1 DAY,"
	    " n.old_secret, NULL) AS old_secret, n.last_error, r.email,"
	    " m.project_id, p.name AS project, m.environment_id,"
	    " e.name AS environment, e.url AS environment_url,"
	    " m.deployment_id, d.pipeline_id, l.name AS pipeline, d.branch,"
	    " d.tag, d.commit_hash, d.commit_message, d.env_vars_sent, " THEN_STATUS
	    " AS status, " IF_ENDED("d.reason") " AS reason, " IF_ENDED(
		"d.detail") " AS detail, d.warnings, d.`trigger`,"
			    " u.username AS user FROM notice m"
			    " LEFT JOIN notifier n ON n.id = m.notifier_id"
			    " AND n.valid = 1 AND n.active = 1"
			    " LEFT JOIN deployment d ON d.id = m.deployment_id"
			    " LEFT JOIN project p ON p.id = m.project_id"
			    " LEFT JOIN environment e ON e.id = m.environment_id"
			    " LEFT JOIN pipeline l ON l.id = d.pipeline_id"
			    " LEFT JOIN user r ON m.notifier_id = 0 AND r.id = m.user_id"
			    " AND r.valid = 1 AND r.status = 'active'"
			    " AND " SEES("r",
				"m.project_id") " LEFT JOIN user u"
						" ON u.id = IF(d.id IS NULL, m.user_id, d.created_by)"
						" WHERE m.id = ?",
	.args = id_args,
	.row = notice_row,
	.rowsize = sizeof(struct notice),
};

static const struct stmt *const notice_claim_stmts[] = {
	&mails,
	&others,
	&spread,
	&due_mail,
	&due_other,
	&take,
	&hold_some,
	&free_some,
	&take_some,
	&load,
	NULL,
};

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
	return db_exec(db, &take, &t->args, &t->done);
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
		if ((e = db_rows(db, a, &mails, NULL, &list)) != NULL)
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
				return notice_load(db, a, t.args.id, out);
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

/* The list of numbers for a statement. */
static const char *
ids_of(struct arena *a, const struct candidate *list, size_t n, bool notifiers)
{
	const char *out;
	struct buf b;
	size_t i;

	buf_init(&b, IDS_MAX);
	for (i = 0; i < n; i++)
		buf_printf(&b, "%c%lld", i == 0 ? '[' : ',',
		    (long long)(notifiers ? list[i].notifier_id : list[i].id));
	buf_puts(&b, "]");
	out = arena_strdup(a, b.data);
	buf_release(&b);
	return out;
}

/* Others that send for the same notifiers wait here, as in take_body(). */
static const struct err *
some_body(struct db *db, void *context)
{
	struct taking_some *t = context;
	struct notice_claims *claims = t->claims;
	struct claim_args args = { .seconds = claims->seconds };
	const struct candidate *found;
	const struct err *e;
	struct list list;
	size_t i;

	claims->n = 0;
	args.ids = ids_of(t->a, t->chosen, t->n, true);
	if ((e = db_rows(db, t->a, &hold_some, &args, &list)) != NULL)
		return e;
	args.ids = ids_of(t->a, t->chosen, t->n, false);
	if ((e = db_rows(db, t->a, &free_some, &args, &list)) != NULL ||
	    list.n == 0)
		return e;
	found = list.items;
	args.ids = ids_of(t->a, found, list.n, false);
	if ((e = db_exec(db, &take_some, &args, NULL)) != NULL)
		return e;
	for (i = 0; i < list.n && i < NOTICE_CLAIMS; i++)
		claims->items[claims->n++] = (struct notice_claimed){
			found[i].id, found[i].rank == RANK_FAILED
		};
	return NULL;
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
	if ((e = db_rows(db, a, &others, NULL, &list)) != NULL)
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
	if ((e = db_rows(db, a, &spread, NULL, &list)) != NULL)
		return e;
	*is_due = list.n > 0;
	some_choose(&t, list.items, list.n, claims->max);
	return t.n == 0 ? NULL : db_transaction(db, some_body, &t);
}

const struct err *
notice_load(struct db *db, struct arena *a, int64_t id, struct notice *out)
{
	const struct claim_args args = { .id = id };

	return db_row(db, a, &load, &args, out);
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
	return due_read(db, &due_mail, 0, max, out);
}

const struct err *
notice_due_other(struct db *db, int64_t max, int64_t *out)
{
	return due_read(db, &due_other, 0, max, out);
}

const struct err *
notice_due_since(struct db *db, int64_t ms, int64_t max, int64_t *out)
{
	return due_read(db, &due_other, ms, max, out);
}
