/* SPDX-License-Identifier: ISC */
#include "store/hook.h"

#include "store/member.h"
#include "store/store.h"

#define S(m) FIELD(struct hook_secret, m, 0)
#define D(m) FIELD(struct hook_delivery, m, 0)

static const struct field project_args[] = { S(project_id), FIELD_END };
static const struct field secret_row[] = { S(project_id), S(secret), S(made_by),
	S(deployer), S(updated_at), FIELD_END };
static const struct stmt secret_find = {
	.name = "hook_secret_find",
	.sql = "SELECT h.project_id, h.secret, h.made_by, u.id AS deployer,"
	       " h.updated_at"
	       " FROM hook_secret h JOIN project p ON p.id = h.project_id"
	       " LEFT JOIN user u ON u.id = h.made_by"
	       " AND " MEMBER_DEPLOYS(
		   "h.project_id") " WHERE h.project_id = ? AND p.valid = 1",
	.args = project_args,
	.row = secret_row,
	.rowsize = sizeof(struct hook_secret),
};
static const struct field put_args[] = { S(project_id), S(secret), S(made_by),
	FIELD_END };
static const struct stmt secret_put = {
	.name = "hook_secret_put",
	.sql = "REPLACE INTO hook_secret (project_id, secret, made_by)"
	       " VALUES (?, ?, ?)",
	.args = put_args,
};

static const struct field key_args[] = { D(project_id), D(delivery_hash),
	FIELD_END };
static const struct field delivery_row[] = { D(project_id), D(delivery_hash),
	D(deployments), D(created_at), FIELD_END };
static const struct stmt delivery_find = {
	.name = "hook_delivery_find",
	.sql = "SELECT project_id, delivery_hash, deployments, created_at"
	       " FROM hook_delivery"
	       " WHERE project_id = ? AND delivery_hash = ?",
	.args = key_args,
	.row = delivery_row,
	.rowsize = sizeof(struct hook_delivery),
};
static const struct field insert_args[] = { D(project_id), D(delivery_hash),
	D(deployments), FIELD_END };
static const struct stmt delivery_insert = {
	.name = "hook_delivery_insert",
	.sql = "INSERT INTO hook_delivery (project_id, delivery_hash,"
	       " deployments) VALUES (?, ?, ?)",
	.args = insert_args,
};

struct found {
	int64_t n;
};
static const struct field found_row[] = { FIELD(struct found, n, 0),
	FIELD_END };
struct hook_age {
	int64_t days;
};
static const struct field age_args[] = { FIELD(struct hook_age, days, 0),
	FIELD_END };
/* Checks first: on a cluster, even a DELETE without rows costs a round trip. */
#define OLD " created_at < NOW(3) - INTERVAL ? DAY"
static const struct stmt old = {
	.name = "hook_old",
	.sql = "SELECT COUNT(*) AS n FROM (SELECT 1 FROM hook_delivery"
	       " WHERE" OLD " LIMIT 1) t",
	.args = age_args,
	.row = found_row,
	.rowsize = sizeof(struct found),
};
static const struct stmt tidy = {
	.name = "hook_tidy",
	.sql = "DELETE FROM hook_delivery WHERE" OLD
	       " ORDER BY created_at LIMIT 500",
	.args = age_args,
};

static const struct stmt *const hook_stmts[] = { &secret_find, &secret_put,
	&delivery_find, &delivery_insert, &old, &tidy, NULL };

const struct store hook_store = {
	.stmts = hook_stmts,
};

const struct err *
hook_secret_find(struct db *db, struct arena *a, int64_t project_id,
    struct hook_secret *out)
{
	const struct hook_secret args = { .project_id = project_id };

	return db_row(db, a, &secret_find, &args, out);
}

const struct err *
hook_secret_put(struct db *db, const struct hook_secret *one)
{
	return db_exec(db, &secret_put, one, NULL);
}

const struct err *
hook_delivery_find(struct db *db, struct arena *a, int64_t project_id,
    const char *delivery_hash, struct hook_delivery *out)
{
	const struct hook_delivery args = { .project_id = project_id,
		.delivery_hash = delivery_hash };

	return db_row(db, a, &delivery_find, &args, out);
}

const struct err *
hook_delivery_insert(struct db *db, const struct hook_delivery *one)
{
	return db_exec(db, &delivery_insert, one, NULL);
}

const struct err *
hook_tidy(struct db *db, struct arena *a, int64_t days)
{
	const struct hook_age args = { .days = days };
	const struct err *e;
	struct found found;

	if ((e = db_row(db, a, &old, &args, &found)) != NULL || found.n == 0)
		return e;
	return db_exec(db, &tidy, &args, NULL);
}
