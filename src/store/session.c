/* SPDX-License-Identifier: ISC */
#include "store/session.h"

#include "store/store.h"

#define SMALL_ARENA ((size_t)4096)

struct session_args {
	int64_t id;
	int64_t user_id;
	int64_t token_id;
	const char *hash;
	const char *state_hash;
	const char *browser_hash;
	int64_t seconds; /* lifetime of a sign-in */
	int64_t idle;
	int64_t max;
	int64_t touch; /* maximum age in seconds of a last use */
};

struct session_found {
	int64_t n;
};

#include "store/session.sql.h"

const struct store session_store = {
	.stmts = session_stmts,
};

const struct err *
signin_insert(struct db *db, const struct signin *s)
{
	return db_exec(db, &sql_signin_insert, s, NULL);
}

const struct err *
signin_take(struct db *db, struct arena *a, const char *state_hash,
    const char *browser_hash, struct signin *out)
{
	const struct session_args args = { .state_hash = state_hash,
		.browser_hash = browser_hash,
		.seconds = SIGNIN_SECONDS };
	const struct err *e;
	struct db_done done;

	if ((e = db_row(db, a, &sql_signin_find, &args, out)) != NULL)
		return e;
	if ((e = db_exec(db, &sql_signin_take, &args, &done)) != NULL)
		return e;
	if (done.affected == 0)
		return err_new(ERR_NOTFOUND,
		    "another request took this sign-in");
	out->state_hash = state_hash;
	out->browser_hash = browser_hash;
	return NULL;
}

const struct err *
session_insert(struct db *db, const struct session *new,
    const struct session_term *term, struct when *expires_at)
{
	struct session_args args = { .user_id = new->user_id,
		.token_id = new->token_id,
		.hash = new->hash,
		.max = term->max };
	const struct stmt *stmt = new->token_id == 0 ?
	    &sql_session_insert :
	    &sql_session_insert_by_token;
	struct arena *a = arena_open(SMALL_ARENA);
	struct session made;
	const struct err *e;
	struct db_done done;

	expires_at->ms = 0;
	if ((e = db_exec(db, stmt, &args, &done)) != NULL)
		goto out;
	if (done.affected == 0) {
		e = err_new(ERR_NOTFOUND, "token %lld",
		    (long long)new->token_id);
		goto out;
	}
	args.id = done.insert_id;
	if ((e = db_row(db, a, &sql_session_end_of, &args, &made)) != NULL)
		goto out;
	*expires_at = made.expires_at;
out:
	arena_close(a);
	return e;
}

const struct err *
session_delete(struct db *db, const char *hash)
{
	const struct session_args args = { .hash = hash };

	return db_exec(db, &sql_session_delete, &args, NULL);
}

const struct err *
session_delete_of(struct db *db, int64_t user_id)
{
	const struct session_args args = { .user_id = user_id };

	return db_exec(db, &sql_session_delete_of, &args, NULL);
}

const struct err *
principal_by_session(struct db *db, struct arena *a, const char *hash,
    const struct session_term *term, struct principal *out)
{
	const struct session_args args = { .hash = hash,
		.idle = term->idle,
		.max = term->max };

	return db_row(db, a, &sql_principal_by_session, &args, out);
}

int64_t
session_touch_seconds(const struct session_term *term)
{
	return term->idle / 4 < 300 ? term->idle / 4 : 300;
}

const struct err *
session_touch(struct db *db, int64_t id, const struct session_term *term)
{
	const struct session_args args = { .id = id,
		.touch = session_touch_seconds(term) };

	return db_exec(db, &sql_session_touch, &args, NULL);
}

static const struct err *
tidy_table(struct db *db, const struct stmt *find, const struct stmt *remove,
    const struct session_args *args)
{
	struct arena *a = arena_open(SMALL_ARENA);
	struct session_found found;
	const struct err *e;

	if ((e = db_row(db, a, find, args, &found)) == NULL && found.n != 0)
		e = db_exec(db, remove, args, NULL);
	arena_close(a);
	return e;
}

const struct err *
session_tidy(struct db *db, const struct session_term *term)
{
	const struct session_args args = { .seconds = SIGNIN_SECONDS,
		.idle = term->idle };
	const struct err *e;

	if ((e = tidy_table(db, &sql_session_old_signins,
		 &sql_session_tidy_signins, &args)) != NULL)
		return e;
	if ((e = tidy_table(db, &sql_session_ended, &sql_session_tidy_ended,
		 &args)) != NULL)
		return e;
	return tidy_table(db, &sql_session_unused, &sql_session_tidy_unused,
	    &args);
}
