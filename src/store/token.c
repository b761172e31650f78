/* SPDX-License-Identifier: ISC */
#include "store/columns.h"
#include "store/store.h"
#include "store/user.h"

#define A(m) FIELD(struct api_token, m, 0)
#define P(m) FIELD(struct principal, m, 0, .doc = NULL)

/* clang-format off */
#define TOKEN(X, T)							\
	X(T, KEY, id, FIELD_OUT, .doc = "Id of the token.")		\
	X(T, BLIND, user_id, 0)						\
	X(T, ONCE, name, FIELD_OUT | FIELD_IN | FIELD_MUST | FIELD_LINE, \
	    .min = 1, .max = 100, .doc = "Purpose of the token.")	\
	X(T, ONCE, role, FIELD_OUT | FIELD_IN, .values = ROLE_NAMES_VIEWER,	\
	    .named = "TokenRole",					\
	    .doc = "Role of the token; the default and maximum is the "	\
		   "highest role that the user or token that creates "	\
		   "it has anywhere. The user's current role limits "	\
		   "it.")						\
	X(T, BLIND, hash, 0)						\
	X(T, NONE, token, FIELD_OUT | FIELD_DETAIL | FIELD_NULL,	\
	    .doc = "The token; only in the response that creates it.")	\
	X(T, READ, created_at, FIELD_OUT, .doc = "Time of creation.")	\
	X(T, READ, last_used_at, FIELD_OUT | FIELD_NULL,		\
	    .doc = "Time of the last use, to within five minutes.")	\
	X(T, ONCE, expires_at, FIELD_OUT | FIELD_IN | FIELD_NULL,	\
	    .doc = "Time of expiry; null = never. The default and maximum " \
		   "is the expiry of the token that creates it.")

static const struct field token_fields[] = {
	COLUMNS_FIELDS(TOKEN, struct api_token)
};
/* clang-format on */

const struct shape api_token_shape = {
	.name = "ApiToken",
	.fields = token_fields,
	.size = sizeof(struct api_token),
	.doc = "A token for programs, with the rights of its user or fewer.",
};

#define COLUMNS COLUMNS_SELECT(TOKEN)

struct token_query {
	int64_t user_id;
	int64_t limit;
	int64_t offset;
};
#define Q(m) FIELD(struct token_query, m, 0, .doc = NULL)

static const struct field page_args[] = { Q(user_id), Q(limit), Q(offset),
	FIELD_END };
static const struct field user_args[] = { Q(user_id), FIELD_END };
static const struct stmt page = {
	.name = "token_page",
	.sql = "SELECT " COLUMNS
	       " FROM api_token WHERE user_id = ? AND valid = 1"
	       " ORDER BY id LIMIT ? OFFSET ?",
	.args = page_args,
	.row = token_fields,
	.rowsize = sizeof(struct api_token),
};
static const struct stmt count = {
	.name = "token_count",
	.sql = "SELECT COUNT(*) AS n FROM api_token WHERE user_id = ?"
	       " AND valid = 1",
	.args = user_args,
	.row = page_count_row,
	.rowsize = sizeof(struct page_count),
};
/* clang-format off */
static const struct field insert_args[] = {
	COLUMNS_INSERT_ARGS(TOKEN, struct api_token)
};
/* clang-format on */
static const struct stmt insert = {
	.name = "token_insert",
	.sql = COLUMNS_INSERT("api_token", TOKEN),
	.args = insert_args,
};
static const struct field delete_args[] = { A(user_id), A(id), FIELD_END };
static const struct stmt delete_token = {
	.name = "token_delete",
	.sql = "UPDATE api_token SET valid = 0 WHERE user_id = ? AND id = ?"
	       " AND valid = 1",
	.args = delete_args,
};

static const struct stmt by_id = {
	.name = "token_by_id",
	.sql = "SELECT " COLUMNS
	       " FROM api_token WHERE user_id = ? AND id = ? AND valid = 1",
	.args = delete_args,
	.row = token_fields,
	.rowsize = sizeof(struct api_token),
};

static const struct field hash_args[] = { A(hash), FIELD_END };
static const struct field principal_row[] = { P(user_id), P(username), P(role),
	P(cap), P(token_id), P(last_used_at), P(expires_at), P(is_refused),
	FIELD_END };
static const struct stmt by_hash = {
	.name = "principal_by_token",
	.sql = "SELECT u.id AS user_id, u.username,"
	       " IF(t.role + 0 < u.role + 0, t.role, u.role) AS role,"
	       " t.role AS cap,"
	       " t.id AS token_id, t.last_used_at, t.expires_at,"
	       " u.git_refused_at IS NOT NULL AS is_refused"
	       " FROM api_token t JOIN user u ON u.id = t.user_id"
	       " WHERE t.hash = ? AND t.valid = 1 AND u.valid = 1"
	       " AND u.status = 'active' AND (t.expires_at IS NULL"
	       " OR t.expires_at > CURRENT_TIMESTAMP(3))",
	.args = hash_args,
	.row = principal_row,
	.rowsize = sizeof(struct principal),
};
static const struct field touch_args[] = { P(token_id), FIELD_END };
static const struct stmt touch = {
	.name = "token_touch",
	.sql = "UPDATE api_token SET last_used_at = CURRENT_TIMESTAMP(3)"
	       " WHERE id = ? AND (last_used_at IS NULL OR last_used_at <"
	       " CURRENT_TIMESTAMP(3) - INTERVAL 5 MINUTE)",
	.args = touch_args,
};

static const struct stmt *const token_stmts[] = {
	&page,
	&count,
	&insert,
	&delete_token,
	&by_id,
	&by_hash,
	&touch,
	NULL,
};

const struct store token_store = {
	.stmts = token_stmts,
};

const struct err *
token_page(struct db *db, struct arena *a, int64_t user_id, struct page *p,
    struct list *out)
{
	const struct token_query q = { .user_id = user_id,
		.limit = p->limit,
		.offset = page_offset(p) };

	return page_read(db, a, &count, &page, &q, p, out);
}

const struct err *
token_insert(struct db *db, const struct api_token *t, int64_t *id)
{
	const struct err *e;
	struct db_done done;

	*id = 0;
	if ((e = db_exec(db, &insert, t, &done)) != NULL)
		return e;
	*id = done.insert_id;
	return NULL;
}

const struct err *
token_by_id(struct db *db, struct arena *a, int64_t user_id, int64_t id,
    struct api_token *out)
{
	const struct api_token args = { .user_id = user_id, .id = id };

	return db_row(db, a, &by_id, &args, out);
}

const struct err *
token_delete(struct db *db, int64_t user_id, int64_t id)
{
	const struct api_token args = { .user_id = user_id, .id = id };
	const struct err *e;
	struct db_done done;

	if ((e = db_exec(db, &delete_token, &args, &done)) != NULL)
		return e;
	if (done.affected == 0)
		return err_new(ERR_NOTFOUND, "token %lld of user %lld",
		    (long long)id, (long long)user_id);
	return NULL;
}

const struct err *
principal_by_token(struct db *db, struct arena *a, const char *hash,
    struct principal *out)
{
	const struct api_token args = { .hash = hash };

	return db_row(db, a, &by_hash, &args, out);
}

const struct err *
token_touch(struct db *db, const struct principal *p)
{
	return db_exec(db, &touch, p, NULL);
}
