/* SPDX-License-Identifier: ISC */
/* Rows written and read by field tables, and statements that do not match their
 * table: db_types CONF, with the tables of the test that runs it. */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/log.h"
#include "core/num.h"
#include "core/str.h"
#include "db/db.h"
#include "tap.h"

#define ARENA ((size_t)256 << 20)

static struct settings settings;
static struct arena *arena;
static struct db *db;

struct probe {
	int64_t id;
	int64_t number;
	const char *text;
	bool flag;
	struct maybe some;
	struct when at;
	struct json_text json;
	struct blob data;
};

#define F(m) FIELD(struct probe, m, 0)

static const struct field probe_row[] = {
	F(id),
	F(number),
	F(text),
	F(flag),
	F(some),
	F(at),
	F(json),
	F(data),
	FIELD_END,
};
static const struct field probe_new[] = {
	F(number),
	F(text),
	F(flag),
	F(some),
	F(at),
	F(json),
	F(data),
	FIELD_END,
};
static const struct field id_args[] = { F(id), FIELD_END };
static const struct field text_args[] = { F(text), FIELD_END };
static const struct field twice_args[] = { F(text), F(text), FIELD_END };
static const struct field text_id_row[] = { F(text), F(id), FIELD_END };
static const struct field number_row[] = { F(number), FIELD_END };
static const struct field at_row[] = { F(at), FIELD_END };
static const struct field flag_row[] = { F(flag), FIELD_END };
static const struct field data_row[] = { F(data), FIELD_END };

#define PROBE "SELECT id, number, text, flag, some, at, json, data FROM probe"

static const struct stmt probe_insert = {
	.name = "probe_insert",
	.sql = "INSERT INTO probe (number, text, flag, some, at, json, data)"
	       " VALUES (?, ?, ?, ?, ?, ?, ?)",
	.args = probe_new,
};
static const struct stmt probe_insert_returning = {
	.name = "probe_insert_returning",
	.sql = "INSERT INTO probe (number, flag) VALUES (7, 1)"
	       " RETURNING id",
	.row = id_args,
	.rowsize = sizeof(struct probe),
};
static const struct stmt probe_by_id = {
	.name = "probe_by_id",
	.sql = PROBE " WHERE id = ?",
	.args = id_args,
	.row = probe_row,
	.rowsize = sizeof(struct probe),
};
static const struct stmt probe_all = {
	.name = "probe_all",
	.sql = PROBE " ORDER BY id",
	.row = probe_row,
	.rowsize = sizeof(struct probe),
};
static const struct stmt probe_touch = {
	.name = "probe_touch",
	.sql = "UPDATE probe SET number = number WHERE id = ?",
	.args = id_args,
};
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

/* Tests that the call succeeded; prints the error. */
static bool
went(const struct err *e, const char *name)
{
	if (e != NULL)
		(void)printf("# %s: %s\n", err_kinds[e->code].name, e->msg);
	return ok(e == NULL, "%s", name);
}

static void
refused(const struct err *e, enum err_code code, const char *text)
{
	if (!ok(e != NULL && e->code == code && strstr(e->msg, text) != NULL,
		"refused: %s", text) &&
	    e != NULL)
		(void)printf("# %s: %s\n", err_kinds[e->code].name, e->msg);
}

static bool
same_text(const char *a, const char *b)
{
	return str_eq(a, b);
}

static void
there_and_back(const struct probe *in, const char *name)
{
	struct db_done done = { 0 };
	struct probe out;

	if (!went(db_exec(db, &probe_insert, in, &done), name))
		return;
	is_int(done.affected, 1, "an insert affects one row");
	out.id = done.insert_id;
	if (!went(db_row(db, arena, &probe_by_id,
		      &(const struct probe){ .id = done.insert_id }, &out),
		"the inserted row is read"))
		return;
	is_int(out.id, done.insert_id, "the id is read back");
	is_int(out.number, in->number, "the number is read back");
	ok(same_text(out.text, in->text), "the text is read back");
	is_int(out.flag, in->flag, "the flag is read back");
	is_int(out.some.set, in->some.set,
	    "the optional number is set as written");
	is_int(out.some.n, in->some.set ? in->some.n : 0,
	    "the optional number is read back");
	is_int(out.at.ms, in->at.ms, "the time is read back");
	ok(same_text(out.json.s, in->json.s), "the JSON is read back");
	is_int((long long)out.data.len, (long long)in->data.len,
	    "the bytes have their length");
	ok((out.data.data == NULL) == (in->data.data == NULL) &&
		(in->data.len == 0 ||
		    memcmp(out.data.data, in->data.data, in->data.len) == 0),
	    "the bytes are read back");
}

static char *
big(size_t len, const char *unit)
{
	char *s = arena_alloc(arena, len + 1, 1);
	size_t i, step = strlen(unit);

	for (i = 0; i + step <= len; i += step)
		(void)memcpy(s + i, unit, step);
	return s;
}

static void
values(void)
{
	static const unsigned char bytes[] = { 0, 1, 2, 0, 255, 39, 92, 0 };
	const struct probe cases[] = {
		{ .number = 0 },
		{ .number = INT64_MIN,
		    .text = "",
		    .flag = true,
		    .some = { INT64_MAX, true },
		    .at = { INT64_C(1795225199999) },
		    .json = { "{}" },
		    .data = { bytes, 0 } },
		{ .number = INT64_MAX,
		    .text = "'; DROP TABLE probe; -- \\ \" %s \t\n\r",
		    .some = { 0, true },
		    .at = { 1 },
		    .json = { "{\"a\": \"\\u00e9\", \"b\": [1, 2.50, 1e400]}" },
		    .data = { bytes, sizeof(bytes) } },
		{ .number = NUM_SAFE,
		    .text = "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x9a\x80 "
			    "e\xcc\x81 \xef\xbf\xbf \xf4\x8f\xbf\xbf",
		    .at = { -1 },
		    .json = { " [ ] " } },
		{ .number = -1, .at = { INT64_C(253402300799999) } },
		{ .number = -1, .at = { INT64_C(-30610224000000) } },
		{ .text = big((size_t)3 << 20, "0123456789\xe2\x82\xac"),
		    .data = { big((size_t)4 << 20, "abc"), (size_t)4 << 20 } },
	};
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		there_and_back(&cases[i],
		    arena_printf(arena, "values %zu are stored", i));
}

static void
lists(void)
{
	struct list list;
	struct probe one;
	const struct probe *row;
	struct db_done done;
	size_t i, ordered = 0;

	went(db_rows(db, arena, &probe_all, NULL, &list), "db_rows succeeds");
	row = list.items;
	is_int((long long)list.n, 7, "db_rows returns all rows");
	for (i = 1; i < list.n; i++)
		if (row[i].id > row[i - 1].id)
			ordered++;
	is_int((long long)ordered, 6, "db_rows returns rows in order");
	went(db_exec(db, &probe_touch, &row[0], &done),
	    "an update without a change succeeds");
	is_int(done.affected, 1,
	    "an update without a change affects the matching row");
	went(db_exec(db, &probe_touch, &(const struct probe){ .id = -1 },
		 &done),
	    "an update without a matching row succeeds");
	is_int(done.affected, 0,
	    "an update without a matching row affects no row");
	refused(db_row(db, arena, &probe_by_id,
		    &(const struct probe){ .id = -1 }, &one),
	    ERR_NOTFOUND, "no row");
	is_int(one.id, 0, "db_row without a row leaves the struct empty");
	went(db_row(db, arena, &probe_insert_returning, NULL, &one),
	    "INSERT ... RETURNING succeeds");
	ok(one.id > row[list.n - 1].id,
	    "INSERT ... RETURNING returns the new id");
	went(db_row(db, arena, &probe_insert_returning, NULL, &one),
	    "INSERT ... RETURNING succeeds again");
}

#define SELECT(what, table_row)                                                \
	{                                                                      \
		.name = "bad", .sql = "SELECT " what, .row = (table_row),      \
		.rowsize = sizeof(struct probe)                                \
	}

static void
bad_values(void)
{
	static const struct {
		struct stmt s;
		const char *text;
	} cases[] = {
		{ SELECT("CAST(NULL AS SIGNED) AS number", number_row),
		    "bad: number: is NULL" },
		{ SELECT("NULLIF(1, 1) AS flag", flag_row),
		    "bad: flag: is NULL" },
		{ SELECT("2 AS flag", flag_row), "bad: flag: is out of range" },
		{ SELECT("-1 AS flag", flag_row),
		    "bad: flag: is out of range" },
		{ SELECT("CAST(18446744073709551615 AS UNSIGNED) AS number",
		      number_row),
		    "bad: number: is out of range" },
		{ SELECT("CONCAT('a', CHAR(0 USING utf8mb4), 'b') AS text",
		      text_args),
		    "bad: text: holds a NUL" },
		{ SELECT("CAST('0999-12-31' AS DATETIME) AS at", at_row),
		    "bad: at: not a valid time" },
		{ SELECT("CAST('1970-01-01' AS DATETIME) AS at", at_row),
		    "bad: at: the first millisecond of 1970" },
	};
	struct probe row;
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		refused(db_row(db, arena, &cases[i].s, NULL, &row),
		    ERR_INTERNAL, cases[i].text);
}

static void
bad_arguments(void)
{
	const struct probe late = { .at = { INT64_C(253402300800000) } };
	const struct probe early = { .at = { INT64_C(-62135596800001) } };
	const struct probe json = { .json = { "{" } };
	const struct probe utf8 = { .text = "\xff\xfe" };
	const struct err *e;

	refused(db_exec(db, &probe_insert, &late, NULL), ERR_INTERNAL,
	    "probe_insert: at: time 253402300800000 is out of range");
	refused(db_exec(db, &probe_insert, &early, NULL), ERR_INTERNAL,
	    "is out of range");
	refused(db_exec(db, &probe_insert, &json, NULL), ERR_INTERNAL, "4025");
	refused(db_exec(db, &probe_insert, &utf8, NULL), ERR_INTERNAL, "1366");
	e = db_exec(db, &log_insert,
	    &(const struct probe){ .text = big(41, "x") }, NULL);
	refused(e, ERR_INTERNAL, "1406");
	ok(e != NULL && e->detail[0] == '\0',
	    "the error has no text for the client");
	went(db_exec(db, &log_insert,
		 &(const struct probe){ .text = big(40, "x") }, NULL),
	    "a text of the maximum length is stored");
	e = db_exec(db, &log_insert,
	    &(const struct probe){ .text = big(40, "x") }, NULL);
	refused(e, ERR_CONFLICT, "1062");
	is_int(e == NULL ? 0 : e->sys, DB_DUPLICATE,
	    "a duplicate has its own code");
}

static const struct err *
check_stmt(const struct stmt *s)
{
	const struct stmt *const list[] = { s, NULL };

	return db_check(db, list);
}

static void
good_statements(void)
{
	static const struct stmt *const good[] = { &probe_insert, &probe_by_id,
		&probe_all, &probe_touch, &log_insert, &log_find, &log_count,
		&counter_add, &probe_insert_returning, NULL };
	static const struct stmt more[] = {
		SELECT("text FROM probe_log", text_args),
		SELECT("1 AS number", number_row),
		SELECT("EXISTS (SELECT 1) AS flag", flag_row),
		SELECT("CURRENT_TIMESTAMP(3) AS at", at_row),
		SELECT("UNHEX('00') AS data", data_row),
		SELECT("json AS text FROM probe", text_args),
	};
	size_t i;

	went(db_check(db, good),
	    "the statements of this test match their tables");
	for (i = 0; i < sizeof(more) / sizeof(more[0]); i++)
		went(check_stmt(&more[i]), more[i].sql);
}

static void
bad_statements(void)
{
	static const struct {
		struct stmt s;
		const char *text;
	} cases[] = {
		{ SELECT("id, text FROM probe_log", text_id_row),
		    "bad: column 0 is id, not text" },
		{ SELECT("text FROM probe_log", text_id_row),
		    "bad: column 1 is missing: id" },
		{ SELECT("text, id, 1 AS more FROM probe_log", text_id_row),
		    "bad: column 2, more, has no table entry" },
		{ SELECT("'1' AS number", number_row),
		    "bad: column 0, number, is text, not an integer" },
		{ SELECT("1.5 AS number", number_row),
		    "bad: column 0, number, is of another type" },
		{ SELECT("SUM(id) AS number FROM probe_log", number_row),
		    "bad: column 0, number, is of another type" },
		{ SELECT("1 AS text", text_args),
		    "bad: column 0, text, is an integer, not text" },
		{ SELECT("data AS text FROM probe", text_args),
		    "bad: column 0, text, is bytes, not text" },
		{ SELECT("text AS data FROM probe", data_row),
		    "bad: column 0, data, is text, not bytes" },
		{ SELECT("'2026-01-01' AS at", at_row),
		    "bad: column 0, at, is text, not a time" },
		{ SELECT("1 AS number WHERE 1 = ?", number_row),
		    "bad: 1 question marks, 0 arguments" },
		{ SELECT("no AS number FROM probe_log", number_row), "1054" },
		{ SELECT("1 AS number FROM nowhere", number_row), "1146" },
		{ SELECT("1 AS number FROM", number_row), "1064" },
		{ SELECT("1 AS number; SELECT 2", number_row), "1064" },
		{ { .name = "bad",
		      .sql = "UPDATE counter SET n = 1",
		      .args = id_args },
		    "bad: 0 question marks, 1 arguments" },
		{ { .name = "bad",
		      .sql = "UPDATE counter SET n = 1",
		      .row = number_row,
		      .rowsize = sizeof(struct probe) },
		    "bad: column 0 is missing: number" },
		{ { .name = "bad", .sql = "SELECT 1 AS number" },
		    "bad: column 0, number, has no table entry" },
	};
	static const struct stmt late = {
		.name = "late",
		.sql = "INSERT INTO probe_log (text) VALUES ('late')"
		       " RETURNING id, text",
		.row = text_id_row,
		.rowsize = sizeof(struct probe),
	};
	struct probe row;
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		refused(check_stmt(&cases[i].s), ERR_CONFIG, cases[i].text);
	went(check_stmt(&late),
	    "db_check does not know the columns of RETURNING");
	refused(db_row(db, arena, &late, NULL, &row), ERR_CONFIG,
	    "late: column 0 is id, not text");
	refused(db_row(db, arena, &cases[0].s, NULL, &row), ERR_CONFIG,
	    "bad: column 0 is id, not text");
}

struct session {
	const char *mode;
	const char *zone;
	const char *isolation;
	const char *charset;
	int64_t autocommit;
	int64_t lock;
	int64_t statement;
	int64_t cluster;
};

#define S(m) FIELD(struct session, m, 0)

/* The settings of a connection with a timeout of five seconds. */
static void
session(unsigned flags, int64_t statement)
{
	static const struct field row[] = { S(mode), S(zone), S(isolation),
		S(charset), S(autocommit), S(lock), S(statement), S(cluster),
		FIELD_END };
	static const struct stmt read = {
		.name = "session",
		.sql =
		    "SELECT @@sql_mode AS mode, @@time_zone AS zone,"
		    " @@tx_isolation AS isolation,"
		    " @@character_set_connection AS charset,"
		    " @@autocommit AS autocommit,"
		    " @@innodb_lock_wait_timeout AS `lock`,"
		    " CAST(FLOOR(@@max_statement_time) AS SIGNED) AS statement,"
		    " @@wsrep_sync_wait AS cluster",
		.row = row,
		.rowsize = sizeof(struct session),
	};
	struct session set;
	struct db *other;

	if (!went(db_open(&settings, flags, &other), "another connection") ||
	    !went(db_row(other, arena, &read, NULL, &set), "its session"))
		return;
	ok(strstr(set.mode, "STRICT_TRANS_TABLES") != NULL &&
		strstr(set.mode, "ONLY_FULL_GROUP_BY") != NULL,
	    "the SQL mode is strict");
	is_str(set.zone, "+00:00", "the time zone is UTC");
	is_str(set.isolation, "READ-COMMITTED",
	    "the isolation level is READ COMMITTED");
	is_str(set.charset, "utf8mb4", "the character set is utf8mb4");
	is_int(set.autocommit, 1, "autocommit is on");
	is_int(set.lock, 4, "lock waits end before the client's timeout");
	is_int(set.statement, statement,
	    "statements end before the client's timeout");
	is_int(set.cluster, 7, "reads wait for the cluster");
	db_close(other);
}

static const struct stmt compound = {
	.name = "probe_compound",
	.sql = DB_COMPOUND "INSERT INTO probe_log (text) VALUES (?);"
			   " IF ROW_COUNT() > 0 THEN SELECT id FROM probe_log"
			   " WHERE text = ?; END IF; END",
	.args = twice_args,
	.row = id_args,
	.rowsize = sizeof(struct probe),
};
static const struct stmt compound_late = {
	.name = "probe_compound_late",
	.sql = DB_COMPOUND "SELECT id FROM probe_log WHERE text = ?;"
			   " INSERT INTO probe_log (text) VALUES (?); END",
	.args = twice_args,
	.row = id_args,
	.rowsize = sizeof(struct probe),
};
static const struct stmt compound_two = {
	.name = "probe_compound_two",
	.sql = DB_COMPOUND "SELECT id FROM probe_log WHERE text = ?;"
			   " SELECT id FROM probe_log WHERE text = ?; END",
	.args = twice_args,
	.row = id_args,
	.rowsize = sizeof(struct probe),
};

static void
compound_statements(void)
{
	static const struct stmt *const all[] = { &compound, &compound_late,
		&compound_two, NULL };
	struct probe args = { .text = "compound 1" }, first, second;

	went(db_check(db, all), "compound statements are checked");
	went(db_row(db, arena, &compound, &args, &first),
	    "a compound statement returns a row");
	ok(db_has_written(db), "a compound statement counts as a write");
	args.text = "compound 2";
	went(db_row(db, arena, &compound, &args, &second),
	    "a compound statement returns a row the next time");
	ok(second.id > first.id,
	    "a compound statement returns the row of its arguments");
	refused(db_row(db, arena, &compound, &args, &second), ERR_CONFLICT,
	    "probe_compound: 1062");
	refused(db_row(db, arena, &compound_late, &args, &second), ERR_CONFLICT,
	    "probe_compound_late: 1062");
	refused(db_row(db, arena, &compound_two, &args, &second), ERR_CONFIG,
	    "probe_compound_two returns too many results");
	went(db_row(db, arena, &log_find, &args, &second),
	    "the connection can be used");
}

int
main(int argc, char **argv)
{
	const struct err *e;
	struct arena *lasting = arena_open(ARENA);

	if (argc != 2)
		errx(64, "usage: db_types CONF");
	log_init("db_types", 0);
	if ((e = conf_read(lasting, settings_keys, argv[1], 0, &settings)) !=
		NULL ||
	    (e = db_open(&settings, 0, &db)) != NULL)
		errx(1, "%s", e->msg);
	arena = arena_open(ARENA);
	values();
	lists();
	bad_values();
	bad_arguments();
	good_statements();
	bad_statements();
	compound_statements();
	session(0, 4);
	session(DB_API, 4);
	session(DB_MIGRATE, 86399);
	db_close(db);
	arena_close(arena);
	arena_close(lasting);
	return tap_done();
}
