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

#define T(m) FIELD(struct git_token, m, 0)
#define A(m) FIELD(struct token_args, m, 0)

static const struct field user_args[] = { A(user_id), FIELD_END };
static const struct field token_row[] = { T(user_id), T(server), T(access),
	T(refresh), T(expires_at), T(epoch), FIELD_END };
/* Nothing is done in the name of a disabled user. */
static const struct stmt by_user = {
	.name = "gittoken_by_user",
	.sql = "SELECT t.user_id, t.server, t.access, t.refresh,"
	       " t.expires_at, t.epoch FROM git_token t"
	       " JOIN user u ON u.id = t.user_id WHERE t.user_id = ?"
	       " AND u.valid = 1 AND u.status = 'active'",
	.args = user_args,
	.row = token_row,
	.rowsize = sizeof(struct git_token),
};
static const struct field put_args[] = { T(user_id), T(server), T(access),
	T(refresh), T(expires_at), FIELD_END };
static const struct stmt put = {
	.name = "gittoken_put",
	.sql = "INSERT INTO git_token (user_id, server, access, refresh,"
	       " expires_at) VALUES (?, ?, ?, ?, ?)"
	       " ON DUPLICATE KEY UPDATE server = VALUES(server),"
	       " access = VALUES(access), refresh = VALUES(refresh),"
	       " expires_at = VALUES(expires_at), epoch = epoch + 1,"
	       " attempts = 0, refresh_by = NULL, refresh_until = NULL,"
	       " updated_at = NOW(3)",
	.args = put_args,
};
static const struct stmt delete_of = {
	.name = "gittoken_delete",
	.sql = "DELETE FROM git_token WHERE user_id = ?",
	.args = user_args,
};
static const struct field drop_args[] = { A(user_id), A(epoch), FIELD_END };
static const struct stmt drop = {
	.name = "gittoken_drop",
	.sql = "DELETE FROM git_token WHERE user_id = ? AND epoch = ?",
	.args = drop_args,
};
struct token_tries {
	int64_t attempts;
};
static const struct field tries_row[] = {
	FIELD(struct token_tries, attempts, 0),
	FIELD_END,
};
/* Locks the user first, as a sign-in does. */
static const struct stmt tries_of = {
	.name = "gittoken_tries",
	.sql = "SELECT STRAIGHT_JOIN t.attempts FROM user u"
	       " JOIN git_token t ON t.user_id = u.id"
	       " WHERE u.id = ? AND t.epoch = ? FOR UPDATE",
	.args = drop_args,
	.row = tries_row,
	.rowsize = sizeof(struct token_tries),
};
static const struct field begin_args[] = { A(holder), A(seconds), A(user_id),
	A(epoch), A(again), FIELD_END };
static const struct stmt refresh_begin = {
	.name = "gittoken_refresh_begin",
	.sql =
	    "UPDATE git_token SET refresh_by = ?,"
	    " refresh_until = NOW(3) + INTERVAL ? SECOND,"
	    " attempts = attempts + 1 WHERE user_id = ? AND epoch = ? AND (refresh_until IS NULL"
	    " OR refresh_until <= NOW(3) OR refresh_by = ?)",
	.args = begin_args,
};
#define W(m) FIELD(struct token_state, m, 0)
static const struct field state_row[] = { W(epoch), W(refresh_by), FIELD_END };
static const struct stmt state_of = {
	.name = "gittoken_state",
	.sql = "SELECT epoch, refresh_by FROM git_token WHERE user_id = ?",
	.args = user_args,
	.row = state_row,
	.rowsize = sizeof(struct token_state),
};
/* Stores a refreshed token even if another process holds the right now: only
 * the newest token works. */
static const struct field end_args[] = { A(server), A(access), A(refresh),
	A(expires_at), A(holder), A(user_id), A(epoch), FIELD_END };
static const struct stmt refresh_end = {
	.name = "gittoken_refresh_end",
	.sql = "UPDATE git_token SET server = ?, access = ?, refresh = ?,"
	       " expires_at = ?, refresh_by = ?, refresh_until = NULL,"
	       " epoch = epoch + 1, attempts = 0, updated_at = NOW(3)"
	       " WHERE user_id = ? AND epoch = ?",
	.args = end_args,
};
static const struct field cancel_args[] = { A(user_id), A(holder), FIELD_END };
static const struct stmt refresh_cancel = {
	.name = "gittoken_refresh_cancel",
	.sql = "UPDATE git_token SET refresh_until = NULL"
	       " WHERE user_id = ? AND refresh_by = ?",
	.args = cancel_args,
};

static const struct stmt *const gittoken_stmts[] = {
	&by_user,
	&put,
	&delete_of,
	&drop,
	&tries_of,
	&refresh_begin,
	&state_of,
	&refresh_end,
	&refresh_cancel,
	NULL,
};

const struct store gittoken_store = {
	.stmts = gittoken_stmts,
};

const struct err *
gittoken_by_user(struct db *db, struct arena *a, int64_t user_id,
    struct git_token *out)
{
	const struct token_args args = { .user_id = user_id };

	return db_row(db, a, &by_user, &args, out);
}

const struct err *
gittoken_put(struct db *db, const struct git_token *t)
{
	const struct err *e;

	if ((e = db_exec(db, &put, t, NULL)) != NULL)
		return e;
	return gitaccount_accept(db, t->user_id);
}

const struct err *
gittoken_delete(struct db *db, int64_t user_id)
{
	const struct token_args args = { .user_id = user_id };

	return db_exec(db, &delete_of, &args, NULL);
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
	if ((e = db_row(db, a, &tries_of, &r->args, &tries)) != NULL ||
	    (e = db_exec(db, &drop, &r->args, NULL)) != NULL)
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
	if ((e = db_row(db, a, &state_of, args, &state)) != NULL)
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

	if ((e = db_exec(db, &refresh_begin, &args, &done)) != NULL)
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

	if ((e = db_exec(db, &refresh_end, &args, &done)) != NULL)
		return e;
	if (done.affected == 0)
		e = why_not(db, &args, &mine);
	return mine ? NULL : e;
}

const struct err *
gittoken_refresh_cancel(struct db *db, int64_t user_id, const char *holder)
{
	const struct token_args args = { .user_id = user_id, .holder = holder };

	return db_exec(db, &refresh_cancel, &args, NULL);
}
