/* SPDX-License-Identifier: ISC */
#include "store/gittoken.h"

#include "core/str.h"
#include "store/gitaccount.h"
#include "store/store.h"

#define SMALL_ARENA ((size_t)4096)

/* `refresh_until` alone marks a refresh in progress. `refresh_by` stays, so
 * that a repeated call finds the result of the first. */
struct token_args {
	int64_t user_id;
	int64_t epoch;
	int64_t seconds;
	const char *holder;
	const char *again;
	const char *server;
	struct blob access;
	struct blob refresh;
	struct when expires_at;
};

struct token_state {
	int64_t epoch;
	const char *refresh_by;
};

struct token_tries {
	int64_t attempts;
};

#include "store/gittoken.sql.h"

const struct store gittoken_store = {
	.stmts = gittoken_stmts,
};

const struct err *
gittoken_by_user(struct db *db, struct arena *a, int64_t user_id,
    struct git_token *out)
{
	const struct token_args args = { .user_id = user_id };

	return db_row(db, a, &sql_gittoken_by_user, &args, out);
}

const struct err *
gittoken_put(struct db *db, const struct git_token *t)
{
	const struct err *e;

	if ((e = db_exec(db, &sql_gittoken_put, t, NULL)) != NULL)
		return e;
	return gitaccount_accept(db, t->user_id);
}

const struct err *
gittoken_delete(struct db *db, int64_t user_id)
{
	const struct token_args args = { .user_id = user_id };

	return db_exec(db, &sql_gittoken_delete, &args, NULL);
}

struct refused {
	struct token_args args;
	enum gittoken_end why;
	bool ended;
};

static const struct err *
refused_body(struct db *db, void *context)
{
	struct refused *r = context;
	struct arena *a = arena_open(SMALL_ARENA);
	struct token_tries tries;
	const struct err *e;

	r->ended = false;
	if ((e = db_row(db, a, &sql_gittoken_tries, &r->args, &tries)) !=
		NULL ||
	    (e = db_exec(db, &sql_gittoken_drop, &r->args, NULL)) != NULL)
		goto out;
	r->ended = r->why == GITTOKEN_ACCOUNT || tries.attempts <= 1;
	if (r->ended)
		e = gitaccount_refuse(db, r->args.user_id);
out:
	arena_close(a);
	return e != NULL && e->code == ERR_NOTFOUND ? NULL : e;
}

const struct err *
gittoken_refused(struct db *db, int64_t user_id, int64_t epoch,
    enum gittoken_end why, bool *ended)
{
	struct refused r = { .args = { .user_id = user_id, .epoch = epoch },
		.why = why };
	const struct err *e = db_transaction(db, refused_body, &r);

	*ended = e == NULL && r.ended;
	return e;
}

/* Why nothing was changed. `mine` is set if the holder itself has stored the
 * next epoch, in a call whose response was lost. */
static const struct err *
why_not(struct db *db, const struct token_args *args, bool *mine)
{
	struct arena *a = arena_open(SMALL_ARENA);
	struct token_state state;
	const struct err *e;

	*mine = false;
	if ((e = db_row(db, a, &sql_gittoken_state, args, &state)) != NULL)
		goto out;
	*mine = state.epoch == args->epoch + 1 &&
	    str_eq(state.refresh_by, args->holder);
	if (state.epoch != args->epoch)
		e = err_new(ERR_PRECONDITION,
		    "git token of user %lld: epoch %lld",
		    (long long)args->user_id, (long long)state.epoch);
	else
		e = err_new(ERR_CONFLICT,
		    "git token of user %lld is being refreshed",
		    (long long)args->user_id);
out:
	arena_close(a);
	return e;
}

const struct err *
gittoken_refresh_begin(struct db *db, int64_t user_id, int64_t epoch,
    const char *holder)
{
	const struct token_args args = { .user_id = user_id,
		.epoch = epoch,
		.seconds = GITTOKEN_REFRESH_SECONDS,
		.holder = holder,
		.again = holder };
	const struct err *e;
	struct db_done done;
	bool mine;

	if ((e = db_exec(db, &sql_gittoken_refresh_begin, &args, &done)) !=
	    NULL)
		return e;
	return done.affected == 0 ? why_not(db, &args, &mine) : NULL;
}

const struct err *
gittoken_refresh_end(struct db *db, const struct git_token *t,
    const char *holder)
{
	const struct token_args args = { .user_id = t->user_id,
		.epoch = t->epoch,
		.holder = holder,
		.server = t->server,
		.access = t->access,
		.refresh = t->refresh,
		.expires_at = t->expires_at };
	const struct err *e;
	struct db_done done;
	bool mine = false;

	if ((e = db_exec(db, &sql_gittoken_refresh_end, &args, &done)) != NULL)
		return e;
	if (done.affected == 0)
		e = why_not(db, &args, &mine);
	return mine ? NULL : e;
}

const struct err *
gittoken_refresh_cancel(struct db *db, int64_t user_id, const char *holder)
{
	const struct token_args args = { .user_id = user_id, .holder = holder };

	return db_exec(db, &sql_gittoken_refresh_cancel, &args, NULL);
}
