/* SPDX-License-Identifier: ISC */
#include <string.h>

#include "db/conn.h"

/* The end of the line or of the text. */
static const char *
line_end(const char *s)
{
	const char *end = strchr(s, '\n');

	return end == NULL ? s + strlen(s) : end;
}

static bool
is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* Skips blank lines and comment lines. */
static const char *
blank_skip(const char *s)
{
	for (;;) {
		while (is_blank(*s))
			s++;
		if (strncmp(s, "--", 2) != 0)
			return s;
		s = line_end(s);
	}
}

/* The end of a statement: a `;` at the end of a line. */
static const char *
statement_end(const char *s)
{
	const char *end, *last;

	for (;; s = end + 1) {
		end = line_end(s);
		for (last = end; last > s && is_blank(last[-1]); last--)
			continue;
		if (last > s && last[-1] == ';')
			return last;
		if (*end == '\0')
			return end;
	}
}

const struct err *
db_script(struct db *db, const char *sql)
{
	enum db_what what = DB_BUG;
	const struct err *e;
	const char *end;

	for (sql = blank_skip(sql); *sql != '\0'; sql = blank_skip(end)) {
		end = statement_end(sql);
		if ((e = conn_ready(db, CONN_LOOK, &what)) == NULL)
			e = conn_query(db, sql, (size_t)(end - sql), &what);
		if (e != NULL) {
			conn_judge(db, what);
			return err_wrap(e, "statement \"%.*s\"",
			    (int)strcspn(sql, "\n"), sql);
		}
	}
	return NULL;
}
