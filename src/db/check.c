/* SPDX-License-Identifier: ISC */
#include <malloc.h>
#include <stdio.h>
#include <string.h>

#include "core/str.h"
#include "db/conn.h"

#define BINARY_CHARSET 63

/* Kinds of columns, as bits. */
enum kind {
	K_NUMBER = 1 << 0,
	K_TEXT = 1 << 1,
	K_BYTES = 1 << 2,
	K_TIME = 1 << 3,
	K_OTHER = 1 << 4,
};

static const unsigned wanted[] = {
	[F_INT] = K_NUMBER,
	[F_STR] = K_TEXT,
	[F_BOOL] = K_NUMBER,
	[F_MAYBE] = K_NUMBER,
	[F_WHEN] = K_TIME,
	[F_JSON] = K_TEXT,
	[F_LIST] = 0,
	[F_MAP] = 0,
	[F_BLOB] = K_BYTES,
};

static const struct {
	enum enum_field_types type;
	enum kind kind;
} types[] = {
	{ MYSQL_TYPE_TINY, K_NUMBER },
	{ MYSQL_TYPE_SHORT, K_NUMBER },
	{ MYSQL_TYPE_INT24, K_NUMBER },
	{ MYSQL_TYPE_LONG, K_NUMBER },
	{ MYSQL_TYPE_LONGLONG, K_NUMBER },
	{ MYSQL_TYPE_DATETIME, K_TIME },
	{ MYSQL_TYPE_TIMESTAMP, K_TIME },
	{ MYSQL_TYPE_STRING, K_TEXT },
	{ MYSQL_TYPE_VAR_STRING, K_TEXT },
	{ MYSQL_TYPE_VARCHAR, K_TEXT },
	{ MYSQL_TYPE_TINY_BLOB, K_TEXT },
	{ MYSQL_TYPE_BLOB, K_TEXT },
	{ MYSQL_TYPE_MEDIUM_BLOB, K_TEXT },
	{ MYSQL_TYPE_LONG_BLOB, K_TEXT },
};

static const char *
kind_name(unsigned kind)
{
	switch (kind) {
	case K_NUMBER:
		return "an integer";
	case K_TEXT:
		return "text";
	case K_BYTES:
		return "bytes";
	case K_TIME:
		return "a time";
	default:
		return "of another type";
	}
}

static unsigned
kind_of(const MYSQL_FIELD *column)
{
	size_t i;

	for (i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (types[i].type == column->type) {
			if (types[i].kind == K_TEXT &&
			    column->charsetnr == BINARY_CHARSET)
				return K_BYTES;
			return types[i].kind;
		}
	return K_OTHER;
}

static const struct err *
columns_compare(const char *name, const struct field *row,
    const MYSQL_FIELD *columns, unsigned n)
{
	const struct field *f;
	unsigned at = 0, kind;

	for (f = row; f != NULL && f->name != NULL; f++) {
		if (at == n)
			return err_new(ERR_CONFIG,
			    "%s: column %u is missing: %s", name, at, f->name);
		if (strcmp(columns[at].name, f->name) != 0)
			return err_new(ERR_CONFIG,
			    "%s: column %u is %s, not %s", name, at,
			    columns[at].name, f->name);
		kind = kind_of(&columns[at]);
		if ((kind & wanted[f->type]) == 0)
			return err_new(ERR_CONFIG,
			    "%s: column %u, %s, is %s, not %s", name, at,
			    f->name, kind_name(kind),
			    kind_name(wanted[f->type]));
		at++;
	}
	if (at < n)
		return err_new(ERR_CONFIG,
		    "%s: column %u, %s, has no table entry", name, at,
		    columns[at].name);
	return NULL;
}

const struct err *
check_columns(const char *name, const struct field *row, MYSQL_STMT *st)
{
	MYSQL_RES *meta = mysql_stmt_result_metadata(st);
	const struct err *e;

	if (meta == NULL)
		return row == NULL ?
		    NULL :
		    err_new(ERR_CONFIG, "%s: column 0 is missing: %s", name,
			row->name);
	e = columns_compare(name, row, mysql_fetch_fields(meta),
	    mysql_num_fields(meta));
	mysql_free_result(meta);
	return e;
}

static bool
returns_later(const struct stmt *s)
{
	return str_starts(s->sql, DB_COMPOUND) ||
	    (!str_starts(s->sql, "SELECT ") &&
		strstr(s->sql, " RETURNING ") != NULL);
}

static const struct err *
check_one(struct db *db, const struct stmt *s)
{
	enum db_what what = DB_BUG;
	struct prepared *p;
	const struct err *e;
	const size_t args = row_width(s->args);

	if (args > DB_COLUMNS || row_width(s->row) > DB_COLUMNS ||
	    row_width(s->more) > DB_COLUMNS)
		return err_new(ERR_CONFIG, "%s: more than %d columns", s->name,
		    DB_COLUMNS);
	if ((e = conn_ready(db, CONN_LOOK, &what)) != NULL)
		return e;
	if ((e = stmt_get(db, s, false, &p, &what)) != NULL) {
		conn_judge(db, what);
		if (what != DB_BUG)
			return e;
		return err_as(e, ERR_CONFIG, e->sys);
	}
	if (mysql_stmt_param_count(p->st) != args)
		return err_new(ERR_CONFIG,
		    "%s: %lu question marks, %zu arguments", s->name,
		    mysql_stmt_param_count(p->st), args);
	if (returns_later(s)) /* its columns are known only after it runs */
		return NULL;
	return check_columns(s->name, s->row, p->st);
}

const struct err *
db_check(struct db *db, const struct stmt *const *list)
{
	const struct err *e;

	for (; *list != NULL; list++) {
		e = check_one(db, *list);
		stmt_forget(db, *list);
		if (e != NULL)
			return e;
	}
	(void)malloc_trim(0);
	return NULL;
}
