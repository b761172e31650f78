/* SPDX-License-Identifier: ISC */
#include "store/session.h"

#include "store/store.h"

#define SMALL_ARENA ((size_t)4096)

#define S(m) FIELD(struct signin, m, 0)
#define A(m) FIELD(struct session_args, m, 0)

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

static const struct field begin_args[] = { S(state_hash), S(browser_hash),
	S(verifier), FIELD_END };
static const struct stmt begin = {
	.name = "signin_insert",
	.sql = "INSERT INTO signin (state_hash, browser_hash, verifier)"
	       " VALUES (?, ?, ?)",
	.args = begin_args,
};
static const struct field take_args[] = { A(state_hash), A(browser_hash),
	A(seconds), FIELD_END };
static const struct field signin_row[] = { S(verifier), FIELD_END };
static const struct stmt look = {
	.name = "signin_find",
	.sql = "SELECT verifier FROM signin WHERE state_hash = ?"
	       " AND browser_hash = ?"
	       " AND created_at > NOW(3) - INTERVAL ? SECOND",
	.args = take_args,
	.row = signin_row,
	.rowsize = sizeof(struct signin),
};
/* Only one of several concurrent requests deletes it. */
static const struct stmt take = {
	.name = "signin_take",
	.sql = "DELETE FROM signin WHERE state_hash = ? AND browser_hash = ?"
	       " AND created_at > NOW(3) - INTERVAL ? SECOND",
	.args = take_args,
};

static const struct field insert_args[] = { A(user_id), A(hash), A(max),
	FIELD_END };
static const struct stmt insert = {
	.name = "session_insert",
	.sql = "INSERT INTO session (user_id, hash, expires_at)"
	       " VALUES (?, ?, NOW(3) + INTERVAL ? SECOND)",
	.args = insert_args,
};
static const struct field token_args[] = { A(hash), A(max), A(max), A(token_id),
	FIELD_END };
static const struct stmt insert_by_token = {
	.name = "session_insert_by_token",
	.sql = "INSERT INTO session (user_id, token_id, hash, expires_at)"
	       " SELECT t.user_id, t.id, ?, LEAST(NOW(3) + INTERVAL ? SECOND,"
	       " COALESCE(t.expires_at, NOW(3) + INTERVAL ? SECOND))"
	       " FROM api_token t WHERE t.id = ? AND t.valid = 1",
	.args = token_args,
};
static const struct field id_args[] = { A(id), FIELD_END };
static const struct field end_row[] = { FIELD(struct session, expires_at, 0),
	FIELD_END };
static const struct stmt end_of = {
	.name = "session_end_of",
	.sql = "SELECT expires_at FROM session WHERE id = ?",
	.args = id_args,
	.row = end_row,
	.rowsize = sizeof(struct session),
};
static const struct field hash_args[] = { A(hash), FIELD_END };
static const struct stmt delete_one = {
	.name = "session_delete",
	.sql = "DELETE FROM session WHERE hash = ?",
	.args = hash_args,
};
static const struct field user_args[] = { A(user_id), FIELD_END };
static const struct stmt delete_of = {
	.name = "session_delete_of",
	.sql = "DELETE FROM session WHERE user_id = ?",
	.args = user_args,
};

#define P(m) FIELD(struct principal, m, 0)
static const struct field find_args[] = { A(hash), A(idle), A(max), FIELD_END };
static const struct field principal_row[] = { P(user_id), P(username), P(role),
	P(cap), P(session_id), P(last_used_at), P(token_id), P(expires_at),
	FIELD_END };
/* The maximum lifetime is checked again: the setting may have been reduced. */
static const struct stmt by_hash = {
	.name = "principal_by_session",
	.sql = "SELECT u.id AS user_id, u.username,"
	       " IF(t.role + 0 < u.role + 0, t.role, u.role) AS role,"
	       " t.role AS cap, s.id AS session_id, s.last_used_at,"
	       " COALESCE(s.token_id, 0) AS token_id, t.expires_at"
	       " FROM session s JOIN user u ON u.id = s.user_id"
	       " LEFT JOIN api_token t ON t.id = s.token_id"
	       " WHERE s.hash = ? AND u.valid = 1 AND u.status = 'active'"
	       " AND (s.token_id IS NULL OR (t.valid = 1"
	       " AND u.git_refused_at IS NULL))"
	       " AND (t.expires_at IS NULL OR t.expires_at > NOW(3))"
	       " AND s.expires_at > NOW(3)"
	       " AND s.last_used_at > NOW(3) - INTERVAL ? SECOND"
	       " AND s.created_at > NOW(3) - INTERVAL ? SECOND",
	.args = find_args,
	.row = principal_row,
	.rowsize = sizeof(struct principal),
};
static const struct field touch_args[] = { A(id), A(touch), FIELD_END };
static const struct stmt touch = {
	.name = "session_touch",
	.sql = "UPDATE session SET last_used_at = NOW(3) WHERE id = ?"
	       " AND last_used_at <= NOW(3) - INTERVAL ? SECOND",
	.args = touch_args,
};

static const struct field found_row[] = {
	FIELD(struct session_found, n, 0),
	FIELD_END,
};
static const struct field seconds_args[] = { A(seconds), FIELD_END };
static const struct stmt old_signins = {
	.name = "session_old_signins",
	.sql = "SELECT COUNT(*) AS n FROM (SELECT 1 FROM signin"
	       " WHERE created_at <= NOW(3) - INTERVAL ? SECOND LIMIT 1) t",
	.args = seconds_args,
	.row = found_row,
	.rowsize = sizeof(struct session_found),
};
/* Anyone can start sign-ins, so more of them are deleted at once. */
static const struct stmt tidy_signins = {
	.name = "session_tidy_signins",
	.sql = "DELETE FROM signin"
	       " WHERE created_at <= NOW(3) - INTERVAL ? SECOND"
	       " ORDER BY created_at LIMIT 5000",
	.args = seconds_args,
};
static const struct stmt ended = {
	.name = "session_ended",
	.sql = "SELECT COUNT(*) AS n FROM (SELECT 1 FROM session"
	       " WHERE expires_at <= NOW(3) LIMIT 1) t",
	.row = found_row,
	.rowsize = sizeof(struct session_found),
};
static const struct stmt tidy_ended = {
	.name = "session_tidy_ended",
	.sql = "DELETE FROM session WHERE expires_at <= NOW(3)"
	       " ORDER BY expires_at LIMIT 500",
};
static const struct field idle_args[] = { A(idle), FIELD_END };
static const struct stmt unused = {
	.name = "session_unused",
	.sql = "SELECT COUNT(*) AS n FROM (SELECT 1 FROM session"
	       " WHERE last_used_at <= NOW(3) - INTERVAL ? SECOND LIMIT 1) t",
	.args = idle_args,
	.row = found_row,
	.rowsize = sizeof(struct session_found),
};
static const struct stmt tidy_unused = {
	.name = "session_tidy_unused",
	.sql = "DELETE FROM session"
	       " WHERE last_used_at <= NOW(3) - INTERVAL ? SECOND"
	       " ORDER BY last_used_at LIMIT 500",
	.args = idle_args,
};

static const struct stmt *const session_stmts[] = {
	&begin,
	&look,
	&take,
	&insert,
	&insert_by_token,
	&end_of,
	&delete_one,
	&delete_of,
	&by_hash,
	&touch,
	&old_signins,
	&tidy_signins,
	&ended,
	&tidy_ended,
	&unused,
	&tidy_unused,
	NULL,
};

const struct store session_store = {
	.stmts = session_stmts,
};

const struct err *
signin_insert(struct db *db, const struct signin *s)
{
	return db_exec(db, &begin, s, NULL);
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

	if ((e = db_row(db, a, &look, &args, out)) != NULL)
		return e;
	if ((e = db_exec(db, &take, &args, &done)) != NULL)
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
	const struct stmt *stmt = new->token_id == 0 ? &insert :
						       &insert_by_token;
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
	if ((e = db_row(db, a, &end_of, &args, &made)) != NULL)
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

	return db_exec(db, &delete_one, &args, NULL);
}

const struct err *
session_delete_of(struct db *db, int64_t user_id)
{
	const struct session_args args = { .user_id = user_id };

	return db_exec(db, &delete_of, &args, NULL);
}

const struct err *
principal_by_session(struct db *db, struct arena *a, const char *hash,
    const struct session_term *term, struct principal *out)
{
	const struct session_args args = { .hash = hash,
		.idle = term->idle,
		.max = term->max };

	return db_row(db, a, &by_hash, &args, out);
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

	return db_exec(db, &touch, &args, NULL);
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

	if ((e = tidy_table(db, &old_signins, &tidy_signins, &args)) != NULL)
		return e;
	if ((e = tidy_table(db, &ended, &tidy_ended, &args)) != NULL)
		return e;
	return tidy_table(db, &unused, &tidy_unused, &args);
}
