/* SPDX-License-Identifier: ISC */
#include "queue/total.h"

#include <unistd.h>

#include "queue/stores.h"

#define SHARDS 16

const char *const notice_results[NOTICE_RESULT__MAX] = {
	[NOTICE_DELIVERED] = "delivered",
	[NOTICE_RETRIED] = "retried",
	[NOTICE_DROPPED] = "dropped",
};

/* Arguments of all statements here. */
struct total_args {
	int64_t shard;
	int64_t id; /* of a deployment, or of a project */
	const char *status;
	const char *reason;
	const char *kind;
	const char *result;
};

#include "queue/total.sql.h"

const struct store total_store = {
	.stmts = total_stmts,
};

int64_t
total_shard(void)
{
	return getpid() % SHARDS;
}

const struct err *
total_ended_all(struct db *db, int64_t project_id, enum reason reason)
{
	const struct total_args args = { .shard = total_shard(),
		.id = project_id,
		.status = state_kinds[reason_kinds[reason].ends].name,
		.reason = reason_kinds[reason].name };

	return db_exec(db, &sql_total_ended_all, &args, NULL);
}

const struct err *
total_notice(struct db *db, const char *kind, enum notice_result result)
{
	const struct total_args args = { .shard = total_shard(),
		.kind = kind,
		.result = notice_results[result] };

	return db_exec(db, &sql_total_notice, &args, NULL);
}

const struct err *
total_deployments(struct db *db, struct arena *a, struct list *out)
{
	return db_rows(db, a, &sql_total_deployments, NULL, out);
}

const struct err *
total_notices(struct db *db, struct arena *a, struct list *out)
{
	return db_rows(db, a, &sql_total_notices, NULL, out);
}
