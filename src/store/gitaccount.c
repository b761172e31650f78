/* SPDX-License-Identifier: ISC */
#include "store/gitaccount.h"

#include "store/session.h"
#include "store/store.h"

struct account_args {
	int64_t user_id;
	const char *server;
	int64_t seconds;
	int64_t hold;
};
#define A(m) FIELD(struct account_args, m, 0)

#define UNCHECKED "git_checked_at <= NOW(3) - INTERVAL ? SECOND"
#define FREE "(git_check_after IS NULL OR git_check_after <= NOW(3))"

static const struct field unchecked_args[] = { A(server), A(seconds),
	FIELD_END };
static const struct field account_row[] = {
	FIELD(struct gitaccount, user_id, 0),
	FIELD_END,
};
/* With EXISTS, MariaDB would read the tables from end to end. */
static const struct stmt unchecked = {
	.name = "gitaccount_unchecked",
	.sql = "SELECT u.id AS user_id FROM user u WHERE u.forge = ?"
	       " AND u.valid = 1 AND u.status = 'active'"
	       " AND u.git_refused_at IS NULL AND u." UNCHECKED " AND " FREE
	       " AND COALESCE((SELECT 1 FROM session s WHERE s.user_id = u.id"
	       " AND s.expires_at > NOW(3) LIMIT 1), (SELECT 1"
	       " FROM api_token t WHERE t.user_id = u.id AND t.valid = 1"
	       " AND (t.expires_at IS NULL OR t.expires_at > NOW(3))"
	       " LIMIT 1)) = 1"
	       " ORDER BY u.id LIMIT 20",
	.args = unchecked_args,
	.row = account_row,
	.rowsize = sizeof(struct gitaccount),
};
static const struct field take_args[] = { A(hold), A(user_id), A(seconds),
	FIELD_END };
static const struct stmt take = {
	.name = "gitaccount_take",
	.sql = "UPDATE user SET git_check_after = NOW(3) + INTERVAL ? SECOND"
	       " WHERE id = ? AND " UNCHECKED " AND " FREE,
	.args = take_args,
};
static const struct field user_args[] = { A(user_id), FIELD_END };
static const struct stmt confirm = {
	.name = "gitaccount_confirm",
	.sql = "UPDATE user SET git_checked_at = NOW(3), git_check_after = NULL"
	       " WHERE id = ?",
	.args = user_args,
};
static const struct stmt accept = {
	.name = "gitaccount_accept",
	.sql =
	    "UPDATE user SET git_checked_at = NOW(3), git_check_after = NULL,"
	    " git_refused_at = NULL WHERE id = ?",
	.args = user_args,
};
static const struct stmt refuse = {
	.name = "gitaccount_refuse",
	.sql = "UPDATE user SET git_refused_at = NOW(3) WHERE id = ?",
	.args = user_args,
};
static const struct field unconfirmed_args[] = { A(user_id), A(seconds),
	FIELD_END };
static const struct stmt refuse_unchecked = {
	.name = "gitaccount_refuse_unchecked",
	.sql = "UPDATE user SET git_refused_at = NOW(3)"
	       " WHERE id = ? AND " UNCHECKED,
	.args = unconfirmed_args,
};

static const struct stmt *const gitaccount_stmts[] = { &unchecked, &take,
	&confirm, &accept, &refuse, &refuse_unchecked, NULL };

const struct store gitaccount_store = {
	.stmts = gitaccount_stmts,
};

const struct err *
gitaccount_unchecked(struct db *db, struct arena *a, const char *server,
    int64_t seconds, struct list *out)
{
	const struct account_args args = { .server = server,
		.seconds = seconds };

	return db_rows(db, a, &unchecked, &args, out);
}

const struct err *
gitaccount_take(struct db *db, int64_t user_id, int64_t seconds, int64_t hold)
{
	const struct account_args args = { .user_id = user_id,
		.seconds = seconds,
		.hold = hold };
	const struct err *e;
	struct db_done done;

	if ((e = db_exec(db, &take, &args, &done)) != NULL)
		return e;
	return done.affected == 0 ?
	    err_new(ERR_CONFLICT,
		"user %lld is being confirmed by another process",
		(long long)user_id) :
	    NULL;
}

const struct err *
gitaccount_confirm(struct db *db, int64_t user_id)
{
	const struct account_args args = { .user_id = user_id };

	return db_exec(db, &confirm, &args, NULL);
}

const struct err *
gitaccount_accept(struct db *db, int64_t user_id)
{
	const struct account_args args = { .user_id = user_id };

	return db_exec(db, &accept, &args, NULL);
}

const struct err *
gitaccount_refuse(struct db *db, int64_t user_id)
{
	const struct account_args args = { .user_id = user_id };
	const struct err *e;

	if ((e = db_exec(db, &refuse, &args, NULL)) != NULL)
		return e;
	return session_delete_of(db, user_id);
}

static const struct err *
refuse_body(struct db *db, void *context)
{
	const struct account_args *args = context;
	const struct err *e;
	struct db_done done;

	e = db_exec(db, &refuse_unchecked, args, &done);
	if (e != NULL || done.affected == 0)
		return e;
	return session_delete_of(db, args->user_id);
}

const struct err *
gitaccount_refuse_unchecked(struct db *db, int64_t user_id, int64_t seconds)
{
	struct account_args args = { .user_id = user_id, .seconds = seconds };

	return db_transaction(db, refuse_body, &args);
}
