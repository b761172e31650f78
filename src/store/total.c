/* SPDX-License-Identifier: ISC */
#include "store/total.h"

#include <unistd.h>

#include "store/store.h"

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
#define A(m) FIELD(struct total_args, m, 0)

static const struct field all_args[] = { A(shard), A(id), A(status), A(reason),
	FIELD_END };
static const struct stmt all = {
	.name = "total_ended_all",
	.sql = TOTAL_INTO
	"COUNT(*), SUM(t.took_ms), SUM(t.waited_ms),"
	" SUM(t.log_size)" TOTAL_FROM(
	    "deployment_queue") "project_id = ? AND status = ? AND reason = ?) t"
				" GROUP BY t.status, t.reason, took, waited" TOTAL_ADD,
	.args = all_args,
};
static const struct field notice_args[] = { A(kind), A(result), A(shard),
	FIELD_END };
static const struct stmt notice = {
	.name = "total_notice",
	.sql = "INSERT INTO notice_total (kind, result, shard, n)"
	       " VALUES (?, ?, ?, 1) ON DUPLICATE KEY UPDATE n = n + 1",
	.args = notice_args,
};

#define D(m) FIELD(struct deployment_total, m, 0)
static const struct field deployment_row[] = { D(status), D(reason), D(took),
	D(waited), D(n), D(took_ms), D(waited_ms), D(log_bytes), FIELD_END };
#define SUM(column) ", CAST(SUM(" #column ") AS SIGNED) AS " #column
static const struct stmt deployments = {
	.name = "total_deployments",
	.sql = "SELECT status, reason, took, waited" SUM(n) SUM(took_ms) SUM(
	    waited_ms) SUM(log_bytes) " FROM deployment_total"
				      " GROUP BY status, reason, took, waited",
	.row = deployment_row,
	.rowsize = sizeof(struct deployment_total),
};
#define N(m) FIELD(struct notice_total, m, 0)
static const struct field notice_row[] = { N(kind), N(result), N(n),
	FIELD_END };
static const struct stmt notices = {
	.name = "total_notices",
	.sql = "SELECT kind, result" SUM(n) " FROM notice_total"
					    " GROUP BY kind, result",
	.row = notice_row,
	.rowsize = sizeof(struct notice_total),
};

static const struct stmt *const total_stmts[] = { &all, &notice, &deployments,
	&notices, NULL };

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

	return db_exec(db, &all, &args, NULL);
}

const struct err *
total_notice(struct db *db, const char *kind, enum notice_result result)
{
	const struct total_args args = { .shard = total_shard(),
		.kind = kind,
		.result = notice_results[result] };

	return db_exec(db, &notice, &args, NULL);
}

const struct err *
total_deployments(struct db *db, struct arena *a, struct list *out)
{
	return db_rows(db, a, &deployments, NULL, out);
}

const struct err *
total_notices(struct db *db, struct arena *a, struct list *out)
{
	return db_rows(db, a, &notices, NULL, out);
}
