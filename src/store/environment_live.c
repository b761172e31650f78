/* SPDX-License-Identifier: ISC */
#include "store/environment_live.h"

#include "store/store.h"

struct live_args {
	int64_t id;
};
static const struct field id_args[] = { FIELD(struct live_args, id, 0),
	FIELD_END };

static const struct stmt replaces = {
	.name = "environment_live_replaces",
	.sql = "UPDATE deployment d"
	       " JOIN environment e ON e.id = d.environment_id"
	       " SET d.replaced = e.live_deployment WHERE d.id = ?",
	.args = id_args,
};
static const struct stmt reached = {
	.name = "environment_live_reached",
	.sql = "UPDATE environment e"
	       " JOIN deployment d ON d.environment_id = e.id"
	       " SET e.live_deployment = d.id WHERE d.id = ?",
	.args = id_args,
};

static const struct stmt *const environment_live_stmts[] = {
	&replaces,
	&reached,
	NULL,
};

const struct store environment_live_store = {
	.stmts = environment_live_stmts,
};

const struct err *
environment_live_set(struct db *db, int64_t deployment_id)
{
	const struct live_args args = { .id = deployment_id };
	const struct err *e;
	struct db_done done;

	e = db_exec(db, &replaces, &args, &done);
	if (e != NULL || done.affected == 0)
		return e; /* most deployments have no environment */
	return db_exec(db, &reached, &args, NULL);
}
