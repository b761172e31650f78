/* SPDX-License-Identifier: ISC */
#include "cli/table.h"

#include <libsmartcols.h>
#include <stdio.h>
#include <string.h>

#include "core/str.h"

#define SHORT 10 /* digits of a hash */

static const struct {
	const char *status;
	const char *color;  /* of libsmartcols */
	const char *escape; /* the same for a terminal */
} colors[] = {
	{ "success", "green", "\033[32m" },
	{ "failed", "red", "\033[31m" },
	{ "running", "cyan", "\033[36m" },
	{ "canceled", "magenta", "\033[35m" },
	{ "interrupted", "magenta", "\033[35m" },
};
#define COLORS (sizeof(colors) / sizeof(colors[0]))

/* Index in the table of colors; COLORS = none. */
static size_t
color_of(const struct client *c, const struct column *column, const char *text)
{
	size_t i = 0;

	if (!c->color || (column->flags & COLUMN_STATUS) == 0)
		return COLORS;
	while (i < COLORS && !str_eq(colors[i].status, text))
		i++;
	return i;
}

/* "3 m ago" */
static const char *
ago(struct arena *a, int64_t ms)
{
	static const struct {
		int64_t seconds;
		const char *unit;
	} units[] = { { 86400, "d" }, { 3600, "h" }, { 60, "m" }, { 1, "s" } };
	int64_t s = (time_now_ms() - ms) / 1000;
	size_t i = 0;

	if (s <= 0)
		return "now";
	while (s < units[i].seconds)
		i++;
	return arena_printf(a, "%lld %s ago", (long long)(s / units[i].seconds),
	    units[i].unit);
}

static const char *
when_text(const struct client *c, int64_t ms)
{
	char text[STR_TIME_SIZE];

	if (ms == 0)
		return "";
	if (c->table)
		return ago(c->a, ms);
	str_time(text, ms);
	return arena_strdup(c->a, text);
}

static const char *
string_text(const struct client *c, const struct column *column, const char *s)
{
	if (s == NULL)
		return "";
	if ((column->flags & COLUMN_LINE) != 0)
		s = arena_strndup(c->a, s, strcspn(s, "\r\n"));
	if (c->table && (column->flags & COLUMN_SHORT) != 0)
		s = arena_strndup(c->a, s, strnlen(s, SHORT));
	return str_visible(c->a, s);
}

static const char *
cell_text(const struct client *c, const struct column *column, const void *item)
{
	const void *at = (const char *)item + column->offset;
	const struct when *when = at;
	const int64_t *number = at;
	const bool *flag = at;

	switch (column->type) {
	case F_STR:
		return string_text(c, column,
		    *(const char *const *)(const void *)at);
	case F_INT:
		return *number == 0 ?
		    "" :
		    arena_printf(c->a, "%lld", (long long)*number);
	case F_WHEN:
		return when_text(c, when->ms);
	case F_BOOL:
		return *flag ? "yes" : "no";
	case F_MAYBE:
	case F_JSON:
	case F_LIST:
	case F_MAP:
	case F_BLOB:
		break;
	}
	return "";
}

static void
print_lines(const struct client *c, const struct column *columns, size_t size,
    const struct list *list)
{
	const struct column *column;
	size_t i;

	for (i = 0; i < list->n; i++)
		for (column = columns; column->name != NULL; column++)
			(void)printf("%s%c",
			    cell_text(c, column,
				(const char *)list->items + i * size),
			    column[1].name == NULL ? '\n' : '\t');
}

/* Adds one row; libsmartcols reports failures as negative numbers. */
static int
row_add(const struct client *c, struct libscols_table *table,
    const struct column *columns, const void *item)
{
	struct libscols_line *line = scols_table_new_line(table, NULL);
	const char *text;
	size_t i, color;
	int rc = line == NULL ? -1 : 0;

	for (i = 0; rc == 0 && columns[i].name != NULL; i++) {
		text = cell_text(c, &columns[i], item);
		rc = scols_line_set_data(line, i, text);
		color = color_of(c, &columns[i], text);
		if (rc == 0 && color < COLORS)
			rc = scols_cell_set_color(scols_line_get_cell(line, i),
			    colors[color].color);
	}
	return rc;
}

static int
table_fill(const struct client *c, struct libscols_table *table,
    const struct column *columns, size_t size, const struct list *list)
{
	const struct column *column;
	size_t i;
	int rc;

	if ((rc = scols_table_enable_colors(table, c->color)) != 0)
		return rc;
	for (column = columns; column->name != NULL; column++)
		if (scols_table_new_column(table, column->name, 0,
			((column->flags & COLUMN_CUT) != 0 ? SCOLS_FL_TRUNC :
							     0) |
			    (column->type == F_INT ? SCOLS_FL_RIGHT : 0)) ==
		    NULL)
			return -1;
	for (i = 0; rc == 0 && i < list->n; i++)
		rc = row_add(c, table, columns,
		    (const char *)list->items + i * size);
	return rc == 0 ? scols_print_table(table) : rc;
}

const struct err *
table_print(const struct client *c, const struct column *columns, size_t size,
    const struct list *list)
{
	struct libscols_table *table;
	int rc;

	if (!c->table) {
		print_lines(c, columns, size, list);
		return NULL;
	}
	if (list->n == 0)
		return NULL;
	if ((table = scols_new_table()) == NULL)
		return err_new(ERR_INTERNAL, "libsmartcols: no table");
	rc = table_fill(c, table, columns, size, list);
	scols_unref_table(table);
	return rc == 0 ? NULL : err_new(ERR_INTERNAL, "libsmartcols: %d", rc);
}

void
table_print_item(const struct client *c, const struct column *columns,
    const void *item)
{
	const struct column *column;
	const char *text;
	size_t color;

	for (column = columns; column->name != NULL; column++) {
		text = cell_text(c, column, item);
		if (*text == '\0')
			continue;
		color = color_of(c, column, text);
		(void)printf(c->table ? "%-12s %s%s%s\n" : "%s\t%s%s%s\n",
		    column->name, color < COLORS ? colors[color].escape : "",
		    text, color < COLORS ? "\033[0m" : "");
	}
}
