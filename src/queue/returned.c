/* SPDX-License-Identifier: ISC */
#include "queue/returned.h"

#include "queue/stores.h"
#include "store/page.h"
#include "store/runner.h"

struct returned_args {
	int64_t deployment_id;
	const char *runner;
};

#include "queue/returned.sql.h"

const struct store returned_store = {
	.stmts = returned_stmts,
};

const struct err *
returned_count(struct db *db, struct arena *a, int64_t deployment_id,
    const char *runner, struct returned *out)
{
	const struct returned_args args = { .deployment_id = deployment_id,
		.runner = runner };

	return db_row(db, a, &sql_returned_count, &args, out);
}

const struct err *
returned_tidy(struct db *db, struct arena *a)
{
	struct page_count row;
	const struct err *e;

	e = db_row(db, a, &sql_returned_old, NULL, &row);
	return e != NULL || row.n == 0 ?
	    e :
	    db_exec(db, &sql_returned_tidy, NULL, NULL);
}
