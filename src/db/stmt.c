/* SPDX-License-Identifier: ISC */
#include <assert.h>
#include <string.h>

#include <mariadb/mysqld_error.h>

#include "core/buf.h"
#include "core/str.h"
#include "db/conn.h"

#define ROWS_FIRST 8   /* initial size of a list */
#define PACKET_REST 64 /* bytes of a packet besides its arguments */
#define SQL_MAX ((size_t)64 * 1024)

/* One result of a statement. */
struct result {
	void *one;         /* receives a single row, or… */
	struct list *many; /* …receives all rows */
	bool is_taken;
	bool found;
};

/* One execution of a statement. */
struct call {
	const struct stmt *s;
	const void *args;
	struct arena *a;
	struct result first, more;
	struct db_done done;
	bool sent;  /* the server may have received it */
	bool begun; /* it has begun a transaction */
	enum db_what what;
};

static const struct err *
stmt_error(const struct stmt *s, MYSQL_STMT *st, enum db_what *what)
{
	unsigned number = mysql_stmt_errno(st);

	*what = db_what(number);
	return db_error(s->name, number, mysql_stmt_error(st));
}

static struct prepared
prepared_make(const struct stmt *s, bool begins, MYSQL_STMT *st)
{
	const size_t args = row_width(s->args) + begins,
		     row = row_width(s->row), more = row_width(s->more);
	const size_t columns = row > more ? row : more;
	const size_t most = args > columns ? args : columns;

	return (struct prepared){ .key = s,
		.begins = begins,
		.st = st,
		.args = mem_alloc(args + 1, sizeof(struct cell)),
		.columns = mem_alloc(columns + 1, sizeof(struct cell)),
		.binds = mem_alloc(most + 1, sizeof(MYSQL_BIND)) };
}

static void
prepared_release(struct prepared *p)
{
	(void)mysql_stmt_close(p->st);
	mem_free(p->args);
	mem_free(p->columns);
	mem_free(p->binds);
}

static const struct err *
prepare_text(const struct stmt *s, MYSQL_STMT *st, const char *sql, size_t len,
    enum db_what *what)
{
	return mysql_stmt_prepare(st, sql, len) == 0 ? NULL :
						       stmt_error(s, st, what);
}

/* A compound statement in another one is a plain block. */
static const struct err *
stmt_prepare(const struct stmt *s, bool begins, MYSQL_STMT *st,
    enum db_what *what)
{
	const bool is_block = str_starts(s->sql, DB_COMPOUND);
	const struct err *e;
	struct buf sql;

	if (!begins)
		return prepare_text(s, st, s->sql, strlen(s->sql), what);
	buf_init(&sql, SQL_MAX);
	buf_printf(&sql, DB_COMPOUND TXN_BEGIN "%s%s; END",
	    is_block ? "BEGIN " : "",
	    s->sql + (is_block ? strlen(DB_COMPOUND) : 0));
	if ((e = buf_check(&sql)) == NULL)
		e = prepare_text(s, st, sql.data, sql.len, what);
	buf_release(&sql);
	return e;
}

const struct err *
stmt_get(struct db *db, const struct stmt *s, bool begins,
    struct prepared **out, enum db_what *what)
{
	const struct err *e;
	MYSQL_STMT *st;
	size_t i;

	*out = NULL;
	for (i = 0; i < db->n; i++)
		if (db->prepared[i].key == s &&
		    db->prepared[i].begins == begins) {
			*out = &db->prepared[i];
			return NULL;
		}
	if ((st = mysql_stmt_init(db->my)) == NULL)
		return err_new(ERR_UNAVAILABLE, "%s: out of memory", s->name);
	if ((e = stmt_prepare(s, begins, st, what)) != NULL) {
		(void)mysql_stmt_close(st);
		return e;
	}
	if (db->n == db->cap) {
		db->cap = db->cap == 0 ? 32 : 2 * db->cap;
		db->prepared = mem_grow(db->prepared, db->cap,
		    sizeof(*db->prepared));
	}
	*out = &db->prepared[db->n++];
	**out = prepared_make(s, begins, st);
	return NULL;
}

void
stmt_forget(struct db *db, const struct stmt *s)
{
	size_t i = 0;

	while (i < db->n)
		if (db->prepared[i].key == s) {
			prepared_release(&db->prepared[i]);
			db->prepared[i] = db->prepared[--db->n];
		} else {
			i++;
		}
}

void
stmt_forget_all(struct db *db)
{
	while (db->n > 0)
		prepared_release(&db->prepared[--db->n]);
}

/* What ends a result halfway is reported by the connection, not the
 * statement. */
static const struct err *
fetch_error(struct db *db, struct prepared *p, struct call *c)
{
	if (mysql_stmt_errno(p->st) != 0)
		return stmt_error(c->s, p->st, &c->what);
	c->what = db_what(mysql_errno(db->my));
	return db_error(c->s->name, mysql_errno(db->my), mysql_error(db->my));
}

/* Makes room for one more row; the rows may move.  NULL if it does not fit. */
static void *
row_room(const struct result *r, size_t size, struct arena *a, size_t n,
    size_t *cap)
{
	char *grown;

	if (r->many == NULL) {
		(void)memset(r->one, 0, size);
		return r->one;
	}
	if (n == *cap) {
		*cap = n == 0 ? ROWS_FIRST : 2 * n;
		if (*cap * size + row_reserve(a) > arena_left(a))
			return NULL;
		grown = arena_alloc(a, *cap, size);
		if (n > 0)
			(void)memcpy(grown, r->many->items, n * size);
		r->many->items = grown;
	}
	return (char *)r->many->items + n * size;
}

/* Processes rows as they arrive: the library would first buffer all of them in
 * memory, however many there are. */
static const struct err *
take_rows(struct db *db, struct prepared *p, struct call *c, struct result *r)
{
	const bool is_first = r == &c->first;
	const struct field *row = is_first ? c->s->row : c->s->more;
	const size_t size = is_first ? c->s->rowsize : c->s->moresize;
	const struct err *e;
	size_t n = 0, cap = 0;
	void *item;
	int rc;

	while ((rc = mysql_stmt_fetch(p->st)) != MYSQL_NO_DATA) {
		if (rc != 0 && rc != MYSQL_DATA_TRUNCATED)
			return fetch_error(db, p, c);
		if (r->many == NULL && n == 1)
			continue; /* another result may follow */
		if ((item = row_room(r, size, c->a, n, &cap)) == NULL)
			return err_public(ERR_TOO_LARGE,
			    "The result has too many items to handle at "
			    "once.");
		if ((e = row_take(p, row, c->a, item)) != NULL)
			return e;
		n++;
	}
	r->found = n > 0;
	if (r->many != NULL)
		r->many->n = n;
	return NULL;
}

static const struct err *
take_first(struct db *db, struct prepared *p, struct call *c)
{
	const struct err *e;

	if (!p->checked &&
	    (e = check_columns(c->s->name, c->s->row, p->st)) != NULL)
		return e;
	p->checked = true;
	if (!p->bound && !row_bind(p, c->s->row))
		return stmt_error(c->s, p->st, &c->what);
	p->bound = true;
	return take_rows(db, p, c, &c->first);
}

static const struct err *
take_more(struct db *db, struct prepared *p, struct call *c)
{
	const struct err *e;

	if (c->more.many == NULL || c->more.is_taken)
		return err_new(ERR_CONFIG, "%s returns too many results",
		    c->s->name);
	c->more.is_taken = true;
	if (!p->checked_more &&
	    (e = check_columns(c->s->name, c->s->more, p->st)) != NULL)
		return e;
	p->checked_more = true;
	if (!row_bind(p, c->s->more))
		return stmt_error(c->s, p->st, &c->what);
	return take_rows(db, p, c, &c->more);
}

/* Reads what follows the rows: a compound statement reports its own end.  The
 * library then knows nothing about the cells. */
static const struct err *
take_end(struct db *db, struct prepared *p, struct call *c)
{
	const struct err *e;
	int rc;

	if (!mysql_stmt_more_results(p->st))
		return NULL;
	p->bound = false;
	while ((rc = mysql_stmt_next_result(p->st)) == 0)
		if (mysql_stmt_field_count(p->st) != 0 &&
		    (e = take_more(db, p, c)) != NULL)
			return e;
	return rc > 0 ? stmt_error(c->s, p->st, &c->what) : NULL;
}

static bool
is_read(const struct stmt *s)
{
	return s->reads || str_starts(s->sql, "SELECT ") ||
	    str_starts(s->sql, "WITH ");
}

/* Reads the rest of the results: what is left would be taken for the response to
 * the next statement. */
static void
read_all(struct db *db, struct prepared *p)
{
	(void)mysql_stmt_free_result(p->st);
	while (mysql_more_results(db->my)) {
		p->bound = false;
		if (mysql_stmt_next_result(p->st) != 0)
			break;
		(void)mysql_stmt_free_result(p->st);
	}
}

/* Whether the next statement must begin the transaction. */
static bool
is_unbegun(const struct db *db)
{
	return db->state == DB_OPEN && !db->is_begun;
}

/* Rejects what the server would not accept at once. */
static const struct err *
size_check(const struct db *db, const struct prepared *p, const struct stmt *s)
{
	const size_t n = row_width(s->args) + p->begins;
	size_t size = PACKET_REST + n * sizeof(MYSQL_TIME), i;

	for (i = 0; i < n; i++)
		size += p->args[i].len;
	return (int64_t)size <= db->packet_max ?
	    NULL :
	    db_error(s->name, ER_NET_PACKET_TOO_LARGE, "not sent");
}

static const struct err *
call_once(struct db *db, struct call *c)
{
	const enum conn_care care = is_read(c->s) || db->state != DB_PLAIN ?
	    CONN_TRUST :
	    CONN_LOOK;
	const bool begins = is_unbegun(db);
	const struct err *e;
	struct prepared *p;

	c->sent = c->begun = c->first.found = c->more.is_taken = false;
	c->what = DB_BUG;
	if ((e = conn_ready(db, care, &c->what)) != NULL ||
	    (e = stmt_get(db, c->s, begins, &p, &c->what)) != NULL ||
	    (e = row_bind_args(p, begins ? db->token : NULL, c->args)) !=
		NULL ||
	    (e = size_check(db, p, c->s)) != NULL)
		return e;
	c->sent = true;
	if (begins)
		c->begun = db->is_begun = true;
	if (mysql_stmt_execute(p->st) != 0) {
		e = stmt_error(c->s, p->st, &c->what);
		goto out;
	}
	if (mysql_stmt_field_count(p->st) == 0) {
		c->done.affected = (int64_t)mysql_stmt_affected_rows(p->st);
		c->done.insert_id = (int64_t)mysql_stmt_insert_id(p->st);
		if (c->done.affected > 0)
			db->wrote = true;
		if (c->s->row != NULL)
			e = err_new(ERR_CONFIG, "%s returns no rows",
			    c->s->name);
	} else {
		if (c->s->row == NULL)
			e = err_new(ERR_CONFIG, "%s returns rows", c->s->name);
		else if ((e = take_first(db, p, c)) == NULL)
			e = take_end(db, p, c);
		if (c->first.found && !is_read(c->s))
			db->wrote = true;
	}
out:
	/* after an error the library may have dropped the cells of the columns,
	 * as it does when the response to a fetch is an error */
	if (e != NULL)
		p->bound = false;
	read_all(db, p);
	return e;
}

static void
rollback_require(struct db *db, enum db_what what, const struct err *e)
{
	db->state = DB_DOOMED;
	db->why = what;
	db->doom = err_keep(&db->kept, e);
}

/* Whether to run the call again, after `tries` attempts since `start`.  The
 * caller waits for little more than one timeout. */
static bool
call_again(struct db *db, struct call *c, int tries, int64_t start)
{
	if (c->what == DB_STALE) {
		stmt_forget(db, c->s);
		if (c->begun) /* START TRANSACTION would commit the first try */
			c->what = DB_AGAIN;
		return !c->begun && tries == 1;
	}
	if (db->state != DB_PLAIN)
		return false;
	if (c->what == DB_AGAIN) {
		if (tries >= DB_CONFLICTS ||
		    time_mono_ms() - start >
			1000 * db->settings->database.timeout)
			return false;
		db_sleep(INT64_C(5) << tries);
		return true;
	}
	return c->what == DB_LOST && tries == 1 &&
	    (is_read(c->s) || !c->sent) && time_mono_ms() - start < DB_SOON;
}

/* An error in a transaction: unless the body may go on, it is final.  A first
 * statement that failed may have left it without its token. */
static void
call_failed(struct db *db, const struct call *c, const struct err *e)
{
	enum db_what what = DB_BUG;
	const struct err *late;

	if (c->what != DB_BUG && c->what != DB_TWICE) {
		rollback_require(db, c->what, e);
	} else if (c->begun && (late = txn_restart(db, &what)) != NULL) {
		conn_judge(db, what);
		rollback_require(db, what, late);
	}
}

static const struct err *
call_run(struct db *db, struct call *c)
{
	int64_t start = time_mono_ms();
	const struct err *e;
	int tries = 0;

	if (db->state == DB_DOOMED)
		return db->doom;
	/* A compound statement does not report how many rows one of its parts
	 * has changed. */
	if (is_unbegun(db) && c->s->row == NULL &&
	    (e = txn_begin(db)) != NULL) {
		if (db->state == DB_OPEN)
			rollback_require(db, DB_BUG, e);
		return e;
	}
	do {
		if ((e = call_once(db, c)) == NULL)
			return NULL;
		conn_judge(db, c->what);
	} while (call_again(db, c, ++tries, start));
	if (db->state == DB_OPEN) {
		call_failed(db, c, e);
		return e;
	}
	if ((c->what == DB_LOST || c->what == DB_CUT) && c->sent &&
	    !is_read(c->s))
		return db_unknown(e);
	return e;
}

static const struct err *
call_row(struct db *db, struct call *c)
{
	const struct err *e;

	assert(c->args != c->first.one || c->args == NULL);
	(void)memset(c->first.one, 0, c->s->rowsize);
	if ((e = call_run(db, c)) != NULL)
		return e;
	if (!c->first.found)
		return err_new(ERR_NOTFOUND, "%s: no row", c->s->name);
	return NULL;
}

const struct err *
db_row(struct db *db, struct arena *a, const struct stmt *s, const void *args,
    void *out)
{
	struct call c = { .s = s, .args = args, .a = a, .first.one = out };

	return call_row(db, &c);
}

const struct err *
db_row_more(struct db *db, struct arena *a, const struct stmt *s,
    const void *args, void *out, struct list *more)
{
	struct call c = { .s = s,
		.args = args,
		.a = a,
		.first.one = out,
		.more.many = more };

	assert(s->more != NULL);
	*more = (struct list){ .items = NULL };
	return call_row(db, &c);
}

const struct err *
db_rows(struct db *db, struct arena *a, const struct stmt *s, const void *args,
    struct list *out)
{
	struct call c = { .s = s, .args = args, .a = a, .first.many = out };

	*out = (struct list){ .items = NULL };
	return call_run(db, &c);
}

const struct err *
db_exec(struct db *db, const struct stmt *s, const void *args,
    struct db_done *out)
{
	struct call c = { .s = s, .args = args };
	const struct err *e;

	if (out != NULL)
		*out = (struct db_done){ .affected = 0 };
	assert(s->row == NULL);
	e = call_run(db, &c);
	if (e == NULL && out != NULL)
		*out = c.done;
	return e;
}

bool
db_has_written(struct db *db)
{
	const bool wrote = db->wrote;

	db->wrote = false;
	return wrote;
}
