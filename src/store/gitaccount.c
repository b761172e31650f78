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

#include "store/gitaccount.sql.h"

const struct store gitaccount_store = {
	.stmts = gitaccount_stmts,
};

const struct err *
gitaccount_unchecked(struct db *db, struct arena *a, const char *server,
    int64_t seconds, struct list *out)
{
	const struct account_args args = { .server = server,
		.seconds = seconds };

	return db_rows(db, a, &sql_gitaccount_unchecked, &args, out);
}

const struct err *
gitaccount_take(struct db *db, int64_t user_id, int64_t seconds, int64_t hold)
{
	const struct account_args args = { .user_id = user_id,
		.seconds = seconds,
		.hold = hold };
	const struct err *e;
	struct db_done done;

	if ((e = db_exec(db, &sql_gitaccount_take, &args, &done)) != NULL)
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

	return db_exec(db, &sql_gitaccount_confirm, &args, NULL);
}

const struct err *
gitaccount_accept(struct db *db, int64_t user_id)
{
	const struct account_args args = { .user_id = user_id };

	return db_exec(db, &sql_gitaccount_accept, &args, NULL);
}

const struct err *
gitaccount_refuse(struct db *db, int64_t user_id)
{
	const struct account_args args = { .user_id = user_id };
	const struct err *e;

	if ((e = db_exec(db, &sql_gitaccount_refuse, &args, NULL)) != NULL)
		return e;
	return session_delete_of(db, user_id);
}

static const struct err *
refuse_body(struct db *db, void *context)
{
	const struct account_args *args = context;
	const struct err *e;
	struct db_done done;

	e = db_exec(db, &sql_gitaccount_refuse_unchecked, args, &done);
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
