/* SPDX-License-Identifier: ISC */
#include "store/idempotency.h"

#include "store/store.h"

#define I(m) FIELD(struct idempotency, m, 0)

static const struct field key_args[] = { I(user_id), I(idempotency_key),
	FIELD_END };
static const struct field answer_row[] = { I(request_hash), I(deployment_id),
	I(answer), FIELD_END };
static const struct stmt find = {
	.name = "idempotency_find",
	.sql = "SELECT request_hash, deployment_id, answer FROM idempotency"
	       " WHERE user_id = ? AND idempotency_key = ?"
	       " AND created_at > NOW(3) - INTERVAL 1 DAY",
	.args = key_args,
	.row = answer_row,
	.rowsize = sizeof(struct idempotency),
};
/* An expired row that has not been deleted yet. */
static const struct stmt expire = {
	.name = "idempotency_expire",
	.sql = "DELETE FROM idempotency"
	       " WHERE user_id = ? AND idempotency_key = ?"
	       " AND created_at <= NOW(3) - INTERVAL 1 DAY",
	.args = key_args,
};
static const struct field save_args[] = { I(user_id), I(idempotency_key),
	I(request_hash), I(deployment_id), I(answer), FIELD_END };
static const struct stmt save = {
	.name = "idempotency_save",
	.sql = "INSERT INTO idempotency (user_id, idempotency_key,"
	       " request_hash, deployment_id, answer) VALUES (?, ?, ?, ?, ?)",
	.args = save_args,
};

struct found {
	int64_t n;
};
static const struct field found_row[] = {
	FIELD(struct found, n, 0, .doc = NULL),
	FIELD_END,
};
static const struct stmt old = {
	.name = "idempotency_old",
	.sql = "SELECT COUNT(*) AS n FROM (SELECT 1 FROM idempotency"
	       " WHERE created_at < NOW(3) - INTERVAL 1 DAY LIMIT 1) t",
	.row = found_row,
	.rowsize = sizeof(struct found),
};
static const struct stmt tidy = {
	.name = "idempotency_tidy",
	.sql = "DELETE FROM idempotency"
	       " WHERE created_at < NOW(3) - INTERVAL 1 DAY"
	       " ORDER BY created_at LIMIT 500",
};

static const struct stmt *const idempotency_stmts[] = { &find, &expire, &save,
	&old, &tidy, NULL };

const struct store idempotency_store = {
	.stmts = idempotency_stmts,
};

const struct err *
idempotency_find(struct db *db, struct arena *a, const struct idempotency *one,
    struct idempotency *out)
{
	return db_row(db, a, &find, one, out);
}

const struct err *
idempotency_save(struct db *db, const struct idempotency *one)
{
	const struct err *e;

	if ((e = db_exec(db, &expire, one, NULL)) != NULL)
		return e;
	return db_exec(db, &save, one, NULL);
}

const struct err *
idempotency_tidy(struct db *db, struct arena *a)
{
	const struct err *e;
	struct found found;

	if ((e = db_row(db, a, &old, NULL, &found)) != NULL || found.n == 0)
		return e;
	return db_exec(db, &tidy, NULL, NULL);
}
