/* SPDX-License-Identifier: ISC */
#include <assert.h>
#include <string.h>
#include <time.h>

#include "db/conn.h"

#define FIRST_YEAR 1000 /* of a DATETIME */
#define LAST_YEAR 9999

size_t
row_width(const struct field *f)
{
	size_t n = 0;

	for (; f != NULL && f->name != NULL; f++)
		n++;
	return n;
}

/* The library's structs have no const; it does not write to arguments. */
static void *
without_const(const void *p)
{
	union {
		const void *in;
		void *out;
	} u = { .in = p };

	return u.out;
}

/* `what` is for messages. */
static const struct err *
time_to_row(int64_t ms, MYSQL_TIME *out)
{
	int64_t fraction = ms % 1000;
	time_t seconds;
	struct tm tm;

	if (fraction < 0)
		fraction += 1000;
	seconds = (time_t)((ms - fraction) / 1000);
	if (gmtime_r(&seconds, &tm) == NULL || tm.tm_year + 1900 < FIRST_YEAR ||
	    tm.tm_year + 1900 > LAST_YEAR)
		return err_new(ERR_INTERNAL, "time %lld is out of range",
		    (long long)ms);
	out->year = (unsigned)(tm.tm_year + 1900);
	out->month = (unsigned)tm.tm_mon + 1;
	out->day = (unsigned)tm.tm_mday;
	out->hour = (unsigned)tm.tm_hour;
	out->minute = (unsigned)tm.tm_min;
	out->second = (unsigned)tm.tm_sec;
	out->second_part = (unsigned long)fraction * 1000;
	out->time_type = MYSQL_TIMESTAMP_DATETIME;
	return NULL;
}

/* The first second of a day. Most of the times in a list are of the same
 * day. */
static int64_t
day_start(const MYSQL_TIME *t)
{
	static struct tm known;
	static int64_t start;
	struct tm tm = {
		.tm_year = (int)t->year - 1900,
		.tm_mon = (int)t->month - 1,
		.tm_mday = (int)t->day,
	};

	if (tm.tm_mday != known.tm_mday || tm.tm_mon != known.tm_mon ||
	    tm.tm_year != known.tm_year) {
		known = tm;
		start = (int64_t)timegm(&tm);
	}
	return start;
}

static const struct err *
time_of_row(const MYSQL_TIME *t, int64_t *out)
{
	int64_t minutes;

	*out = 0;
	if (t->year < FIRST_YEAR || t->month == 0 || t->day == 0)
		return err_new(ERR_INTERNAL, "not a valid time");
	minutes = (int64_t)t->hour * 60 + t->minute;
	*out = (day_start(t) + minutes * 60 + t->second) * 1000 +
	    (int64_t)(t->second_part / 1000);
	if (*out == 0)
		return err_new(ERR_INTERNAL, "the first millisecond of 1970");
	return NULL;
}

static void
bind_bytes(MYSQL_BIND *b, enum enum_field_types type, const void *data,
    size_t len)
{
	b->buffer_type = data == NULL ? MYSQL_TYPE_NULL : type;
	b->buffer = without_const(data);
	b->buffer_length = (unsigned long)len;
	*b->length = (unsigned long)len;
}

static void
bind_number(MYSQL_BIND *b, struct cell *c, int64_t n)
{
	c->n = n;
	b->buffer_type = MYSQL_TYPE_LONGLONG;
	b->buffer = &c->n;
}

static void
bind_text(MYSQL_BIND *b, const char *s)
{
	bind_bytes(b, MYSQL_TYPE_STRING, s, s == NULL ? 0 : strlen(s));
}

static const struct err *
bind_arg(const struct field *f, const void *member, MYSQL_BIND *b,
    struct cell *c)
{
	b->length = &c->len;
	switch (f->type) {
	case F_INT:
		bind_number(b, c, *(const int64_t *)member);
		break;
	case F_BOOL:
		bind_number(b, c, *(const bool *)member ? 1 : 0);
		break;
	case F_MAYBE:
		bind_number(b, c, ((const struct maybe *)member)->n);
		if (!((const struct maybe *)member)->set)
			b->buffer_type = MYSQL_TYPE_NULL;
		break;
	case F_WHEN:
		b->buffer_type = MYSQL_TYPE_NULL;
		if (((const struct when *)member)->ms == 0)
			break;
		b->buffer_type = MYSQL_TYPE_DATETIME;
		b->buffer = &c->time;
		return time_to_row(((const struct when *)member)->ms, &c->time);
	case F_STR:
		bind_text(b, *(const char *const *)member);
		break;
	case F_JSON:
		bind_text(b, ((const struct json_text *)member)->s);
		break;
	case F_BLOB:
		bind_bytes(b, MYSQL_TYPE_LONG_BLOB,
		    ((const struct blob *)member)->data,
		    ((const struct blob *)member)->len);
		break;
	case F_LIST:
	case F_MAP:
		assert(0);
	}
	return NULL;
}

const struct err *
row_bind_args(struct prepared *p, const char *token, const void *args)
{
	const struct stmt *s = p->key;
	const struct field *f;
	const struct err *e;
	size_t n = 0, width = row_width(s->args) + (token != NULL);

	if (mysql_stmt_param_count(p->st) != width)
		return err_new(ERR_CONFIG,
		    "%s: %lu question marks, %zu arguments", s->name,
		    mysql_stmt_param_count(p->st), width);
	if (width == 0)
		return NULL;
	(void)memset(p->binds, 0, width * sizeof(*p->binds));
	if (token != NULL) {
		p->binds[n].length = &p->args[n].len;
		bind_text(&p->binds[n++], token);
	}
	for (f = s->args; f != NULL && f->name != NULL; f++) {
		if ((e = bind_arg(f, field_of(args, f), &p->binds[n],
			 &p->args[n])) != NULL)
			return err_wrap(e, "%s: %s", s->name, f->name);
		n++;
	}
	if (mysql_stmt_bind_param(p->st, p->binds) != 0)
		return db_error(s->name, mysql_stmt_errno(p->st),
		    mysql_stmt_error(p->st));
	return NULL;
}

static void
bind_column(const struct field *f, MYSQL_BIND *b, struct cell *c)
{
	b->length = &c->len;
	b->is_null = &c->null;
	b->error = &c->error;
	switch (f->type) {
	case F_INT:
	case F_BOOL:
	case F_MAYBE:
		b->buffer_type = MYSQL_TYPE_LONGLONG;
		b->buffer = &c->n;
		b->buffer_length = sizeof(c->n);
		break;
	case F_WHEN:
		b->buffer_type = MYSQL_TYPE_DATETIME;
		b->buffer = &c->time;
		b->buffer_length = sizeof(c->time);
		break;
	case F_BLOB:
		b->buffer_type = MYSQL_TYPE_LONG_BLOB;
		break;
	case F_STR:
	case F_JSON:
		b->buffer_type = MYSQL_TYPE_STRING;
		break;
	case F_LIST:
	case F_MAP:
		assert(0);
	}
}

size_t
row_reserve(const struct arena *a)
{
	size_t part = (arena_used(a) + arena_left(a)) / 128;

	return part > 512 ? part : 512;
}

/* Reads the bytes of a column of the current row and appends a NUL. */
static const struct err *
take_bytes(MYSQL_STMT *st, unsigned column, const struct cell *c,
    struct arena *a, char **out)
{
	MYSQL_BIND b;
	unsigned long len;
	my_bool null, error;

	*out = NULL;
	if ((size_t)c->len + row_reserve(a) > arena_left(a))
		return err_public(ERR_TOO_LARGE,
		    "The result is too large to handle at once: request less "
		    "with a smaller \"limit\".");
	*out = arena_alloc(a, (size_t)c->len + 1, 1);
	if (c->len == 0)
		return NULL;
	(void)memset(&b, 0, sizeof(b));
	b.buffer_type = MYSQL_TYPE_LONG_BLOB;
	b.buffer = *out;
	b.buffer_length = c->len;
	b.length = &len;
	b.is_null = &null;
	b.error = &error;
	if (mysql_stmt_fetch_column(st, &b, column, 0) != 0)
		return db_error("column", mysql_stmt_errno(st),
		    mysql_stmt_error(st));
	return NULL;
}

static const struct err *
take_text(MYSQL_STMT *st, unsigned column, const struct cell *c,
    struct arena *a, const char **out)
{
	const struct err *e;
	char *text;

	if ((e = take_bytes(st, column, c, a, &text)) != NULL)
		return e;
	if (memchr(text, '\0', c->len) != NULL)
		return err_new(ERR_INTERNAL, "holds a NUL");
	*out = text;
	return NULL;
}

static const struct err *
take_blob(MYSQL_STMT *st, unsigned column, const struct cell *c,
    struct arena *a, struct blob *out)
{
	const struct err *e;
	char *data;

	if ((e = take_bytes(st, column, c, a, &data)) != NULL)
		return e;
	out->data = data;
	out->len = c->len;
	return NULL;
}

static const struct err *
take_number(const struct field *f, const struct cell *c, void *member)
{
	if (c->error || (f->type == F_BOOL && (c->n < 0 || c->n > 1)))
		return err_new(ERR_INTERNAL, "is out of range");
	if (f->type == F_BOOL)
		*(bool *)member = c->n == 1;
	else if (f->type == F_INT)
		*(int64_t *)member = c->n;
	else
		*(struct maybe *)member = (struct maybe){ c->n, true };
	return NULL;
}

static const struct err *
column_take(MYSQL_STMT *st, unsigned column, const struct field *f,
    const struct cell *c, struct arena *a, void *member)
{
	if (c->null) {
		if ((f->type == F_INT || f->type == F_BOOL) &&
		    (f->flags & FIELD_NULL) == 0)
			return err_new(ERR_INTERNAL, "is NULL");
		return NULL; /* zeroed memory means none */
	}
	switch (f->type) {
	case F_INT:
	case F_BOOL:
	case F_MAYBE:
		return take_number(f, c, member);
	case F_WHEN:
		return time_of_row(&c->time, &((struct when *)member)->ms);
	case F_STR:
		return take_text(st, column, c, a, member);
	case F_JSON:
		return take_text(st, column, c, a,
		    &((struct json_text *)member)->s);
	case F_BLOB:
		return take_blob(st, column, c, a, member);
	case F_LIST:
	case F_MAP:
		break;
	}
	assert(0);
	return NULL;
}

const struct err *
row_take(const struct prepared *p, const struct field *row, struct arena *a,
    void *item)
{
	const struct field *f;
	const struct err *e;
	unsigned column = 0;

	for (f = row; f->name != NULL; f++) {
		if ((e = column_take(p->st, column, f, &p->columns[column], a,
			 field_at(item, f))) != NULL)
			return err_wrap(e, "%s: %s", p->key->name, f->name);
		column++;
	}
	return NULL;
}

bool
row_bind(struct prepared *p, const struct field *row)
{
	const struct field *f;
	size_t n = 0;

	(void)memset(p->binds, 0, row_width(row) * sizeof(*p->binds));
	for (f = row; f->name != NULL; f++, n++)
		bind_column(f, &p->binds[n], &p->columns[n]);
	return mysql_stmt_bind_result(p->st, p->binds) == 0;
}
