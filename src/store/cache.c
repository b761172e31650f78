/* SPDX-License-Identifier: ISC */
#include "store/cache.h"

#include "store/store.h"

struct cache_args {
	int64_t project_id;
};

#include "store/cache.sql.h"

const struct store cache_store = {
	.stmts = cache_stmts,
};

const struct err *
cache_empty(struct db *db, int64_t project_id)
{
	const struct cache_args of = { .project_id = project_id };

	return db_exec(db, &sql_cache_empty, &of, NULL);
}
