/* SPDX-License-Identifier: ISC */
/* store_faults CONF: runs the statement of the stores whose name it reads from
 * standard input, and prints a line about it.  All arguments are 0 or NULL.
 * "list" prints the names of all statements that return rows; "in NAME" runs one
 * in a transaction that is rolled back. */
#include <err.h>
#include <stdio.h>
#include <string.h>

#include "core/log.h"
#include "core/str.h"
#include "probe.h"
#include "queue/stores.h"

#define ROOM ((size_t)65536) /* more than any struct of arguments or row */

static struct arena *arena;
static struct db *db;

static const struct stmt *
stmt_find(const char *name)
{
	const struct store *const *one;
	const struct stmt *const *s;

	for (one = stores; *one != NULL; one++)
		for (s = (*one)->stmts; *s != NULL; s++)
			if (str_eq((*s)->name, name))
				return *s;
	errx(1, "%s is no statement", name);
}

static void
stmt_list(void)
{
	const struct store *const *one;
	const struct stmt *const *s;

	for (one = stores; *one != NULL; one++)
		for (s = (*one)->stmts; *s != NULL; s++)
			if ((*s)->row != NULL)
				(void)printf("%s ", (*s)->name);
	(void)printf("\n");
}

static const struct err *
stmt_run(struct db *d, void *context)
{
	const struct stmt *const *s = context;
	const void *args = arena_alloc(arena, ROOM, 1);
	struct list list;

	return (*s)->more == NULL ?
	    db_rows(d, arena, *s, args, &list) :
	    db_row_more(d, arena, *s, args, arena_alloc(arena, ROOM, 1), &list);
}

/* Its own error rolls the transaction back. */
static const struct err *
stmt_run_inside(struct db *d, void *context)
{
	const struct err *e = stmt_run(d, context);

	return e == NULL || e->code == ERR_NOTFOUND ?
	    err_new(ERR_CONFLICT, "rolled back") :
	    e;
}

static void
command(char *line)
{
	const bool is_inside = str_starts(line, "in ");
	const struct stmt *s = stmt_find(line + (is_inside ? 3 : 0));
	const struct err *e = is_inside ?
	    db_transaction(db, stmt_run_inside, &s) :
	    stmt_run(db, &s);

	if (e == NULL)
		(void)printf("ok\n");
	else
		(void)printf("err %s %d | %s\n", probe_code(e), e->sys, e->msg);
}

int
main(int argc, char **argv)
{
	struct settings settings = { .database = { .socket = NULL } };
	struct arena *lasting = arena_open((size_t)1 << 20);
	const struct err *e;
	char line[256];

	if (argc != 2)
		errx(64, "usage: store_faults CONF");
	log_init("store_faults", 0);
	arena = arena_open((size_t)8 << 20);
	if ((e = conf_read(lasting, settings_keys, argv[1], 0, &settings)) !=
		NULL ||
	    (e = db_open(&settings, 0, &db)) != NULL)
		errx(1, "%s", e->msg);
	while (fgets(line, sizeof(line), stdin) != NULL) {
		line[strcspn(line, "\n")] = '\0';
		arena_clear(arena);
		if (str_eq(line, "list"))
			stmt_list();
		else
			command(line);
		(void)fflush(stdout);
	}
	db_close(db);
	arena_close(arena);
	arena_close(lasting);
	return 0;
}
