/* SPDX-License-Identifier: ISC */
/* A client of the database for tests, db_probe CONF: reads a command per line
 * from standard input and prints a line about each.  The test owns the tables
 * probe_log and counter. */
#include <sys/wait.h>

#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/log.h"
#include "core/str.h"
#include "db/db.h"
#include "probe.h"

#define ARENA ((size_t)256 << 20)

static struct settings settings;
static struct arena *arena;
static struct db *db;

struct probe {
	int64_t id;
	int64_t number;
	const char *text;
};

#define F(m) FIELD(struct probe, m, 0)

static const struct field id_args[] = { F(id), FIELD_END };
static const struct field text_args[] = { F(text), FIELD_END };
static const struct field id_text_args[] = { F(id), F(text), FIELD_END };
static const struct field text_id_row[] = { F(text), F(id), FIELD_END };
static const struct field number_row[] = { F(number), FIELD_END };

static const struct stmt log_insert = {
	.name = "log_insert",
	.sql = "INSERT INTO probe_log (text) VALUES (?)",
	.args = text_args,
};
static const struct stmt log_find = {
	.name = "log_find",
	.sql = "SELECT text, id FROM probe_log WHERE text = ?",
	.args = text_args,
	.row = text_id_row,
	.rowsize = sizeof(struct probe),
};
static const struct stmt log_count = {
	.name = "log_count",
	.sql = "SELECT COUNT(*) AS number FROM probe_log",
	.row = number_row,
	.rowsize = sizeof(struct probe),
};
static const struct stmt counter_add = {
	.name = "counter_add",
	.sql = "UPDATE counter SET n = n + 1 WHERE id = ?",
	.args = id_args,
};
static const struct stmt counter_hold = {
	.name = "counter_hold",
	.sql = "SELECT n AS number FROM counter WHERE id = ? FOR UPDATE",
	.args = id_args,
	.row = number_row,
	.rowsize = sizeof(struct probe),
};
/* Both results are of one statement. */
static const struct stmt both = {
	.name = "both",
	.sql = DB_COMPOUND "SELECT n AS number FROM counter WHERE id = ?;"
			   " SELECT text, id FROM probe_log WHERE text = ?;"
			   " END",
	.args = id_text_args,
	.row = number_row,
	.rowsize = sizeof(struct probe),
	.more = text_id_row,
	.moresize = sizeof(struct probe),
	.reads = true,
};
/* Its second result takes 0.8 s, and is sent in parts. */
static const struct stmt slow_list = {
	.name = "slow_list",
	.sql = DB_COMPOUND "SELECT n AS number FROM counter WHERE id = ?;"
			   " SELECT REPEAT('x', 20000) AS text,"
			   " SLEEP(0.1) AS id FROM seq_1_to_8; END",
	.args = id_args,
	.row = number_row,
	.rowsize = sizeof(struct probe),
	.more = text_id_row,
	.moresize = sizeof(struct probe),
	.reads = true,
};
static const struct stmt all_hold = {
	.name = "all_hold",
	.sql = "SELECT n AS number FROM counter WHERE id > 0 ORDER BY id"
	       " FOR UPDATE",
	.row = number_row,
	.rowsize = sizeof(struct probe),
};
static const struct stmt slow_rows = {
	.name = "slow_rows",
	.sql = "SELECT REPEAT('x', 20000) AS text, SLEEP(0.1) AS id"
	       " FROM seq_1_to_8",
	.row = text_id_row,
	.rowsize = sizeof(struct probe),
};
static const struct stmt rows = {
	.name = "rows",
	.sql = "SELECT seq AS number FROM seq_1_to_5",
	.row = number_row,
	.rowsize = sizeof(struct probe),
};
static const struct stmt counter_read = {
	.name = "counter_read",
	.sql = "SELECT n AS number FROM counter WHERE id = ?",
	.args = id_args,
	.row = number_row,
	.rowsize = sizeof(struct probe),
};
static const struct stmt nap = {
	.name = "nap",
	.sql = "SELECT SLEEP(0.3) AS number",
	.row = number_row,
	.rowsize = sizeof(struct probe),
};
static const struct stmt own_id = {
	.name = "own_id",
	.sql = "SELECT CONNECTION_ID() AS number",
	.row = number_row,
	.rowsize = sizeof(struct probe),
};
static const struct stmt slow = {
	.name = "slow",
	.sql = "SELECT COUNT(*) AS number FROM seq_1_to_1000000 a,"
	       " seq_1_to_1000000 b WHERE a.seq + b.seq < 0",
	.row = number_row,
	.rowsize = sizeof(struct probe),
};
static const struct stmt alter = {
	.name = "alter",
	.sql = "ALTER TABLE counter ADD COLUMN IF NOT EXISTS more BIGINT",
};

struct job {
	const char *text;
	int64_t first, second;
	int runs;
	bool deaf; /* ignores the errors of statements */
};

static void
answer(const struct err *e, const char *more)
{
	if (e == NULL)
		(void)printf("ok %s\n", more);
	else
		(void)printf("err %s %d | %s | %s\n", probe_code(e), e->sys,
		    e->msg, e->detail);
	(void)fflush(stdout);
}

static const struct err *
add_body(struct db *d, void *context)
{
	struct job *job = context;
	const struct probe row = { .text = job->text, .id = 1 };
	const struct err *e;

	job->runs++;
	if ((e = db_exec(d, &log_insert, &row, NULL)) != NULL)
		return e;
	return db_exec(d, &counter_add, &row, NULL);
}

/* The first statement, which begins the transaction, returns a row. */
static const struct err *
look_body(struct db *d, void *context)
{
	const struct probe key = { .id = 1 };
	const struct err *e;
	struct probe row;

	e = db_row(d, arena, &counter_hold, &key, &row);
	return e != NULL ? e : add_body(d, context);
}

/* Ignores the error of its first statement: a result is left unread. */
static const struct err *
careless_body(struct db *d, void *context)
{
	const struct job *job = context;
	const struct probe args = { .text = job->text, .id = 1 };
	struct probe row;

	if (db_row(d, arena, &both, &args, &row) == NULL)
		return err_new(ERR_INTERNAL, "a result was lost");
	return add_body(d, context);
}

/* Ignores every error but the last. */
static const struct err *
reckless_body(struct db *d, void *context)
{
	const struct job *job = context;
	const struct probe args = { .text = job->text, .id = 1 };
	const struct err *e;
	struct probe row;

	e = db_row(d, arena, &counter_hold, &args, &row);
	e = db_exec(d, &log_insert, &args, NULL);
	if (e == NULL)
		e = db_exec(d, &counter_add, &args, NULL);
	return NULL;
}

static const struct err *
rows_body(struct db *d, void *context)
{
	const struct job *job = context;
	const struct probe args = { .text = job->text, .id = 1 };
	const struct err *e;
	struct list list, more;
	struct probe row;

	if ((e = db_exec(d, &log_insert, &args, NULL)) != NULL ||
	    (e = db_rows(d, arena, &all_hold, NULL, &list)) != NULL)
		return e;
	return db_row_more(d, arena, &both, &args, &row, &more);
}

static const struct err *
refuse_body(struct db *d, void *context)
{
	const struct err *e;

	if ((e = add_body(d, context)) != NULL)
		return e;
	return err_public(ERR_CONFLICT, "Not today.");
}

/* Two of them with swapped rows cause a deadlock. */
static const struct err *
cross_body(struct db *d, void *context)
{
	struct job *job = context;
	const struct probe one = { .id = job->first, .text = job->text };
	const struct probe two = { .id = job->second };
	struct probe row;
	const struct err *e;

	job->runs++;
	if ((e = db_exec(d, &counter_add, &one, NULL)) != NULL ||
	    (e = db_row(d, arena, &nap, NULL, &row)) != NULL)
		return e;
	e = db_exec(d, &counter_add, &two, NULL);
	if (e != NULL && !job->deaf)
		return e;
	e = db_exec(d, &log_insert, &one, NULL);
	return job->deaf ? NULL : e;
}

static void
transaction(db_body *body, struct job *job)
{
	const struct err *e = db_transaction(db, body, job);
	char runs[24];

	(void)snprintf(runs, sizeof(runs), "%d", job->runs);
	answer(e, runs);
}

/* Counts the log twice, and reads a table only after a pause. */
static const struct err *
snapshot_body(struct db *d, void *context)
{
	struct job *job = context;
	const struct probe key = { .id = 1 };
	struct probe first, row, second;
	const struct err *e;

	job->runs++;
	if ((e = db_row(d, arena, &log_count, NULL, &first)) != NULL ||
	    (e = db_row(d, arena, &nap, NULL, &row)) != NULL ||
	    (e = db_row(d, arena, &counter_read, &key, &row)) != NULL ||
	    (e = db_row(d, arena, &log_count, NULL, &second)) != NULL)
		return e;
	job->first = first.number;
	job->second = second.number;
	return str_eq(job->text, "write") ? add_body(d, job) : NULL;
}

static void
c_snapshot(char *rest)
{
	struct job job = { .text = rest };
	const struct err *e = db_snapshot(db, snapshot_body, &job);

	answer(e,
	    arena_printf(arena, "%d %s", job.runs,
		job.first == job.second ? "same" : "another"));
}

static void
c_ping(char *rest)
{
	(void)rest;
	answer(db_ping(db), "");
}

static void
c_count(char *rest)
{
	struct probe row;
	const struct err *e = db_row(db, arena, &log_count, NULL, &row);

	(void)rest;
	answer(e, arena_printf(arena, "%lld", (long long)row.number));
}

static void
c_find(char *rest)
{
	const struct probe args = { .text = rest };
	struct probe row;

	answer(db_row(db, arena, &log_find, &args, &row), rest);
}

static void
c_write(char *rest)
{
	const struct probe args = { .text = rest };

	answer(db_exec(db, &log_insert, &args, NULL), rest);
}

static const char *
text_large(const char *size)
{
	const size_t n = (size_t)strtoul(size, NULL, 10);

	return memset(arena_alloc(arena, n + 1, 1), 'x', n);
}

static void
c_large(char *rest)
{
	const struct probe args = { .text = text_large(rest) };
	struct probe row;

	answer(db_row(db, arena, &log_find, &args, &row), "");
}

static const struct err *
large_body(struct db *d, void *context)
{
	const struct job *job = context;
	const struct probe args = { .text = text_large(job->text) };
	const struct probe mark = { .text = "large" };
	const struct err *e = db_exec(d, &log_insert, &mark, NULL);

	return e != NULL ? e : db_exec(d, &log_insert, &args, NULL);
}

static void
c_touch(char *rest)
{
	const struct probe args = { .id = 1 };

	(void)rest;
	answer(db_exec(db, &counter_add, &args, NULL), "");
}

/* Reads one of two results. */
static void
c_half(char *rest)
{
	const struct probe args = { .id = 1, .text = rest };
	struct probe row;

	answer(db_row(db, arena, &both, &args, &row), "");
}

static void
c_hold(char *rest)
{
	struct list list;

	(void)rest;
	answer(db_rows(db, arena, &all_hold, NULL, &list), "");
}

static void
c_rows(char *rest)
{
	const struct stmt *s = str_eq(rest, "slow") ? &slow_rows : &rows;
	const struct err *e;
	struct list list;

	e = db_rows(db, arena, s, NULL, &list);
	answer(e, arena_printf(arena, "%zu", list.n));
}

static void
c_lasting(char *rest)
{
	const struct probe args = { .id = 1 };
	struct list more;
	struct probe row;
	const struct err *e;

	(void)rest;
	e = db_row_more(db, arena, &slow_list, &args, &row, &more);
	answer(e, arena_printf(arena, "%zu", more.n));
}

static void
c_both(char *rest)
{
	const struct probe args = { .id = 1, .text = rest };
	struct list more;
	struct probe row;
	const struct err *e;

	e = db_row_more(db, arena, &both, &args, &row, &more);
	answer(e,
	    arena_printf(arena, "%lld %zu %s", (long long)row.number, more.n,
		more.n > 0 ? ((const struct probe *)more.items)->text : "-"));
}

static void
cross(char *rest, bool deaf)
{
	struct job job = { .text = rest, .first = 1, .second = 2 };

	if (str_starts(rest, "back")) {
		job.first = 2;
		job.second = 1;
	}
	job.deaf = deaf;
	transaction(cross_body, &job);
}

static void
c_cross(char *rest)
{
	cross(rest, false);
}

static void
c_deaf(char *rest)
{
	cross(rest, true);
}

static void
c_alter(char *rest)
{
	(void)rest;
	answer(db_exec(db, &alter, NULL, NULL), "");
}

/* The id of the connection on the server. */
static const struct err *
connection(int64_t *out)
{
	struct probe row;
	const struct err *e = db_row(db, arena, &own_id, NULL, &row);

	*out = row.number;
	return e;
}

/* A child tries the inherited connection; the parent's must survive. */
static void
c_fork(char *rest)
{
	int64_t before, after = 0, childs;
	const struct err *e;
	int status = 0;
	pid_t pid;

	(void)rest;
	if ((e = connection(&before)) == NULL) {
		if ((pid = fork()) == 0) {
			e = connection(&childs);
			db_close(db);
			_exit(e == NULL && childs != before ? 0 : 1);
		}
		(void)waitpid(pid, &status, 0);
		e = connection(&after);
	}
	answer(e,
	    e != NULL           ? "" :
		status != 0     ? "the child failed" :
		before == after ? "same" :
				  "another");
}

static void
c_slow(char *rest)
{
	struct probe row;

	(void)rest;
	answer(db_row(db, arena, &slow, NULL, &row), "");
}

static void
c_schema(char *rest)
{
	(void)rest;
	answer(db_check_schema(db), "");
}

/* A command runs a function, or a body in a transaction. */
static const struct {
	const char *name;
	void (*run)(char *rest);
	db_body *body;
} commands[] = {
	{ "ping", .run = c_ping },
	{ "count", .run = c_count },
	{ "find", .run = c_find },
	{ "write", .run = c_write },
	{ "large", .run = c_large },
	{ "largely", .body = large_body },
	{ "touch", .run = c_touch },
	{ "both", .run = c_both },
	{ "half", .run = c_half },
	{ "hold", .run = c_hold },
	{ "rows", .run = c_rows },
	{ "inside", .body = rows_body },
	{ "lasting", .run = c_lasting },
	{ "add", .body = add_body },
	{ "look", .body = look_body },
	{ "careless", .body = careless_body },
	{ "reckless", .body = reckless_body },
	{ "refuse", .body = refuse_body },
	{ "cross", .run = c_cross },
	{ "deaf", .run = c_deaf },
	{ "snapshot", .run = c_snapshot },
	{ "alter", .run = c_alter },
	{ "fork", .run = c_fork },
	{ "slow", .run = c_slow },
	{ "schema", .run = c_schema },
};

static void
command(size_t i, char *rest)
{
	struct job job = { .text = rest };

	if (commands[i].body != NULL)
		transaction(commands[i].body, &job);
	else
		commands[i].run(rest);
}

static void
serve(void)
{
	char line[256];
	char *rest;
	size_t i;

	while (fgets(line, sizeof(line), stdin) != NULL) {
		line[strcspn(line, "\n")] = '\0';
		rest = line + strcspn(line, " ");
		if (*rest != '\0')
			*rest++ = '\0';
		arena_clear(arena);
		for (i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
			if (strcmp(commands[i].name, line) == 0)
				command(i, rest);
	}
}

int
main(int argc, char **argv)
{
	const struct err *e;
	struct arena *lasting = arena_open(ARENA);

	if (argc != 2)
		errx(64, "usage: db_probe CONF");
	log_init("db_probe", 0);
	if ((e = conf_read(lasting, settings_keys, argv[1], 0, &settings)) !=
		NULL ||
	    (e = db_open(&settings, 0, &db)) != NULL)
		errx(1, "%s", e->msg);
	arena = arena_open(ARENA);
	serve();
	db_close(db);
	arena_close(arena);
	arena_close(lasting);
	return 0;
}
