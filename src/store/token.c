/* SPDX-License-Identifier: ISC */
#include "store/store.h"
#include "store/user.h"

#define A(m, ...) FIELD(struct api_token, m, __VA_ARGS__)
static const struct field token_fields[] = {
	A(id, FIELD_OUT, .doc = "Id of the token."),
	A(name, FIELD_OUT | FIELD_IN | FIELD_MUST | FIELD_LINE, .min = 1,
	    .max = 100, .doc = "Purpose of the token."),
	A(role, FIELD_OUT | FIELD_IN, .values = ROLE_NAMES_VIEWER,
	    .named = "TokenRole",
	    .doc = "Role of the token; the default and maximum is the "
		   "highest role that the user or token that creates it has "
		   "anywhere. The user's current role limits it."),
	A(token, FIELD_OUT | FIELD_DETAIL | FIELD_NULL,
	    .doc = "The token; only in the response that creates it."),
	A(created_at, FIELD_OUT, .doc = "Time of creation."),
	A(last_used_at, FIELD_OUT | FIELD_NULL,
	    .doc = "Time of the last use, to within five minutes."),
	A(expires_at, FIELD_OUT | FIELD_IN | FIELD_NULL,
	    .doc = "Time of expiry; null = never. The default and maximum is "
		   "the expiry of the token that creates it."),
	FIELD_END,
};

const struct shape api_token_shape = {
	.name = "ApiToken",
	.fields = token_fields,
	.size = sizeof(struct api_token),
	.doc = "A token for programs, with the rights of its user or fewer.",
};

struct token_query {
	int64_t user_id;
	int64_t limit;
	int64_t offset;
};

#include "store/token.sql.h"

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

	return page_read(db, a, &sql_token_count, &sql_token_page, &q, p, out);
}

const struct err *
token_insert(struct db *db, const struct api_token *t, int64_t *id)
{
	const struct err *e;
	struct db_done done;

	*id = 0;
	if ((e = db_exec(db, &sql_token_insert, t, &done)) != NULL)
		return e;
	*id = done.insert_id;
	return NULL;
}

const struct err *
token_by_id(struct db *db, struct arena *a, int64_t user_id, int64_t id,
    struct api_token *out)
{
	const struct api_token args = { .user_id = user_id, .id = id };

	return db_row(db, a, &sql_token_by_id, &args, out);
}

const struct err *
token_delete(struct db *db, int64_t user_id, int64_t id)
{
	const struct api_token args = { .user_id = user_id, .id = id };
	const struct err *e;
	struct db_done done;

	if ((e = db_exec(db, &sql_token_delete, &args, &done)) != NULL)
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

	return db_row(db, a, &sql_principal_by_token, &args, out);
}

const struct err *
token_touch(struct db *db, const struct principal *p)
{
	return db_exec(db, &sql_token_touch, p, NULL);
}
