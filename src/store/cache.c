/* SPDX-License-Identifier: ISC */
#include "store/cache.h"

#include "store/store.h"

struct cache_args {
	int64_t project_id;
};

static const struct field args[] = {
	FIELD(struct cache_args, project_id, 0),
	FIELD_END,
};
/* Only whether it differs from that of the last job matters, so it can start
 * again from 0. */
static const struct stmt empty = {
	.name = "cache_empty",
	.sql = "UPDATE project SET cache_generation ="
	       " IF(cache_generation < 2147483647, cache_generation + 1, 0)"
	       " WHERE id = ?",
	.args = args,
};

static const struct stmt *const cache_stmts[] = { &empty, NULL };

const struct store cache_store = {
	.stmts = cache_stmts,
};

const struct err *
cache_empty(struct db *db, int64_t project_id)
{
	const struct cache_args of = { .project_id = project_id };

	return db_exec(db, &empty, &of, NULL);
}
