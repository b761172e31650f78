/* SPDX-License-Identifier: ISC */
#include "store/fact.h"

#include "store/page.h"
#include "store/store.h"

#define SMALL_ARENA 4096
#define ROUNDS 64

#include "store/fact.sql.h"

const struct store fact_store = {
	.stmts = fact_stmts,
};

const struct err *
fact_due(struct db *db, int64_t max, int64_t *out)
{
	struct arena *a = arena_open(SMALL_ARENA);
	const struct err *e;
	struct page_count found;

	*out = max;
	e = db_row(db, a, &sql_fact_due, NULL, &found);
	if (e == NULL && found.n < max)
		*out = found.n;
	arena_close(a);
	return e;
}

const struct err *
fact_take(struct db *db, struct arena *a, struct fact *out)
{
	struct db_done done = { .affected = 0 };
	const struct err *e;
	struct page_count key;
	int i;

	for (i = 0; i < ROUNDS; i++) {
		if ((e = db_row(db, a, &sql_fact_candidate, NULL, &key)) !=
			NULL ||
		    (e = db_exec(db, &sql_fact_take, &key, &done)) != NULL)
			return e;
		if (done.affected == 1)
			return db_row(db, a, &sql_fact_load, &key, out);
	}
	return err_new(ERR_NOTFOUND, "others read the commits");
}

const struct err *
fact_save(struct db *db, const struct fact *fact)
{
	return db_exec(db, &sql_fact_save, fact, NULL);
}
