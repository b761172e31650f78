/* SPDX-License-Identifier: ISC */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/str.h"
#include "db/conn.h"

#define RESOLVE 8000 /* milliseconds to find out the outcome of a lost COMMIT */
#define RETRY_PAUSE 100
#define TOKEN_SIZE 33

struct token {
	const char *token;
};

static const struct field token_fields[] = {
	FIELD(struct token, token, 0),
	FIELD_END,
};

static const struct stmt begin = {
	.name = "commit_token_insert",
	.sql = DB_COMPOUND TXN_BEGIN "END",
	.args = token_fields,
};

static const struct stmt token_find = {
	.name = "commit_token_find",
	.sql = "SELECT token FROM commit_token WHERE token = ?",
	.args = token_fields,
	.row = token_fields,
	.rowsize = sizeof(struct token),
};

/* How one run of the body ended. */
enum outcome {
	TXN_DONE,
	TXN_BEFORE,   /* the token was present: an earlier run was committed */
	TXN_CONFLICT, /* nothing was changed, run it again */
	TXN_LOST,     /* the same, and the connection is lost */
	TXN_UNKNOWN,  /* the response to COMMIT is missing */
	TXN_FAILED,   /* nothing was changed by this run, and it is final */
};

struct txn {
	char token[TOKEN_SIZE];
	db_body *body;
	void *context;
	bool unknown; /* a COMMIT was sent whose outcome is unknown */
	int conflicts;
	int losses;
	int64_t patience; /* no conflict is retried after this time */
	int64_t deadline; /* for finding out the outcome; 0 while none is
			   * lost */
};

static void
token_make(char out[TOKEN_SIZE])
{
	static const char hex[] = "0123456789abcdef";
	unsigned char bytes[(TOKEN_SIZE - 1) / 2];
	size_t i;

	arc4random_buf(bytes, sizeof(bytes));
	for (i = 0; i < sizeof(bytes); i++) {
		out[2 * i] = hex[bytes[i] >> 4];
		out[2 * i + 1] = hex[bytes[i] & 15];
	}
	out[TOKEN_SIZE - 1] = '\0';
}

static enum outcome
outcome_of(enum db_what what)
{
	if (what == DB_AGAIN)
		return TXN_CONFLICT;
	return what == DB_LOST ? TXN_LOST : TXN_FAILED;
}

const struct err *
txn_begin(struct db *db)
{
	const struct token args = { .token = db->token };

	db->is_begun = true;
	return db_exec(db, &begin, &args, NULL);
}

const struct err *
txn_restart(struct db *db, enum db_what *what)
{
	const struct err *e;

	if ((e = conn_query(db, "ROLLBACK", 8, what)) == NULL)
		db->is_begun = false;
	return e;
}

/* Leaves no transaction open: the server itself rolls back when a connection is
 * closed. */
static void
txn_rollback(struct db *db)
{
	enum db_what what;

	if (db->my != NULL && conn_query(db, "ROLLBACK", 8, &what) != NULL)
		db_drop(db);
	db->state = DB_PLAIN;
}

static const struct err *
txn_commit(struct db *db, enum outcome *out)
{
	enum db_what what;
	const struct err *e;

	*out = TXN_DONE;
	db->state = DB_PLAIN;
	if (!db->is_begun) /* the body ran no statement */
		return NULL;
	e = conn_query(db, "COMMIT", 6, &what);
	if (e == NULL)
		return NULL;
	*out = what == DB_AGAIN ? TXN_CONFLICT : TXN_UNKNOWN;
	db_drop(db);
	return err_wrap(e, "commit");
}

/* Rolls back, and judges the run by its error. */
static const struct err *
txn_end(struct db *db, const struct err *e, enum outcome *out)
{
	*out = e == NULL ? TXN_DONE : TXN_FAILED;
	if (db->state == DB_DOOMED) {
		*out = outcome_of(db->why);
		e = db->doom;
	}
	txn_rollback(db);
	return e;
}

/* Runs the body once.  The token is inserted first: if the server is still
 * executing an earlier run, the insert waits for it, and fails if that run was
 * committed.  If there is no such run, the first statement of the body inserts
 * it. */
static const struct err *
txn_run(struct db *db, struct txn *t, enum outcome *out)
{
	enum db_what what = DB_BUG;
	const struct err *e;

	if ((e = conn_ready(db, CONN_LOOK, &what)) != NULL) {
		*out = outcome_of(what);
		conn_judge(db, what);
		return e;
	}
	db->state = DB_OPEN;
	db->token = t->token;
	db->is_begun = false;
	if (t->unknown)
		e = txn_begin(db);
	if (e != NULL && e->sys == DB_DUPLICATE) {
		txn_rollback(db);
		*out = TXN_BEFORE;
		return e;
	}
	if (e == NULL) {
		t->unknown = false;
		e = t->body(db, t->context);
	}
	if (db->state == DB_OPEN && e == NULL)
		return txn_commit(db, out);
	return txn_end(db, e, out);
}

/* Runs the body once, on a snapshot. */
static const struct err *
snapshot_run(struct db *db, const struct txn *t, enum outcome *out)
{
	static const char sql[] = DB_COMPOUND
	    "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ; "
	    "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY; END";
	enum db_what what = DB_BUG;
	const struct err *e;

	if ((e = conn_ready(db, CONN_LOOK, &what)) != NULL ||
	    (e = conn_query(db, sql, sizeof(sql) - 1, &what)) != NULL) {
		*out = outcome_of(what);
		db_drop(db); /* the transaction may have begun */
		return e;
	}
	db->state = DB_OPEN;
	db->is_begun = true;
	return txn_end(db, t->body(db, t->context), out);
}

/* Looks up a rejected token: a cluster may reject a key that no committed row
 * has. */
static const struct err *
token_confirm(struct db *db, const struct txn *t, bool *out)
{
	const struct token args = { .token = t->token };
	struct arena *a = arena_open(1024);
	struct token found;
	const struct err *e;

	e = db_row(db, a, &token_find, &args, &found);
	*out = e == NULL;
	arena_close(a);
	return e;
}

/* Whether to run again; pauses first. */
static bool
try_again(struct txn *t, enum outcome last)
{
	if (last == TXN_UNKNOWN) {
		t->unknown = true;
		if (t->deadline == 0)
			t->deadline = time_mono_ms() + RESOLVE;
	}
	if (t->unknown) {
		db_sleep(RETRY_PAUSE);
		return time_mono_ms() < t->deadline;
	}
	if (last == TXN_CONFLICT) {
		db_sleep(INT64_C(5) << t->conflicts);
		return ++t->conflicts < DB_CONFLICTS &&
		    time_mono_ms() < t->patience;
	}
	return last == TXN_LOST && ++t->losses == 1;
}

/* The time after which no conflict is retried: two timeouts from now. */
static int64_t
patience_end(const struct db *db)
{
	return time_mono_ms() + 2000 * db->settings->database.timeout;
}

bool
db_in_transaction(const struct db *db)
{
	return db->state != DB_PLAIN;
}

const struct err *
db_transaction(struct db *db, db_body *body, void *context)
{
	struct txn t = { .body = body, .context = context };
	enum outcome last;
	const struct err *e;
	bool found;

	assert(db->state == DB_PLAIN);
	token_make(t.token);
	t.patience = patience_end(db);
	do {
		e = txn_run(db, &t, &last);
		if (last == TXN_DONE)
			return NULL;
		if (last == TXN_BEFORE && t.unknown) {
			e = token_confirm(db, &t, &found);
			if (found)
				return NULL;
		}
	} while (try_again(&t, last));
	return t.unknown ? db_unknown(e) : e;
}

const struct err *
db_snapshot(struct db *db, db_body *body, void *context)
{
	struct txn t = { .body = body, .context = context };
	const int64_t soon = time_mono_ms() + DB_SOON;
	enum outcome last;
	const struct err *e;

	assert(db->state == DB_PLAIN);
	t.patience = patience_end(db);
	do
		e = snapshot_run(db, &t, &last);
	while (last != TXN_DONE &&
	    (last != TXN_LOST || time_mono_ms() < soon) && try_again(&t, last));
	return e;
}
