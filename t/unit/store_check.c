/* SPDX-License-Identifier: ISC */
/* store_check CONF: compares every statement of the stores with its tables,
 * then prints each as a line: name, arguments and SQL, separated by tabs.  The
 * test that runs it explains them with EXPLAIN. */
#include <err.h>
#include <stdio.h>

#include "core/log.h"
#include "queue/stores.h"

static void
print(const struct stmt *s)
{
	const struct field *f;

	(void)printf("%s\t", s->name);
	for (f = s->args; f != NULL && f->name != NULL; f++)
		(void)printf("%s ", f->name);
	(void)printf("\t%s\n", s->sql);
}

int
main(int argc, char **argv)
{
	struct settings settings = { .database = { .socket = NULL } };
	struct arena *a = arena_open((size_t)1 << 20);
	const struct store *const *one;
	const struct stmt *const *s;
	const struct err *e;
	struct db *db;

	if (argc != 2)
		errx(64, "usage: store_check CONF");
	log_init("store_check", 0);
	if ((e = conf_read(a, settings_keys, argv[1], 0, &settings)) != NULL ||
	    (e = db_open(&settings, 0, &db)) != NULL)
		errx(1, "%s", e->msg);
	if ((e = store_check(db)) != NULL)
		errx(1, "%s", e->msg);
	for (one = stores; *one != NULL; one++)
		for (s = (*one)->stmts; *s != NULL; s++)
			print(*s);
	db_close(db);
	arena_close(a);
	return 0;
}
