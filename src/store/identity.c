/* SPDX-License-Identifier: ISC */
#include "store/identity.h"

#include <string.h>

#include "store/store.h"

#define SMALL_ARENA ((size_t)4096)

struct identity_args {
	int64_t user_id;
	const char *forge;
	const char *forge_id;
	const char *login;
};

struct identity_found {
	int64_t n;
};

#include "store/identity.sql.h"

const struct store identity_store = {
	.stmts = identity_stmts,
};

static struct identity_args
args_of(const struct identity *who)
{
	return (struct identity_args){ .user_id = who->user_id,
		.forge = who->forge,
		.forge_id = who->forge_id };
}

const struct err *
identity_of(struct db *db, struct arena *a, int64_t user_id,
    struct identity *out)
{
	const struct identity_args args = { .user_id = user_id };

	return db_row(db, a, &sql_identity_of, &args, out);
}

const struct err *
identity_account(struct db *db, struct arena *a, int64_t user_id,
    struct account *out)
{
	const struct identity_args args = { .user_id = user_id };

	return db_row(db, a, &sql_identity_account, &args, out);
}

const struct err *
identity_was_deleted(struct db *db, const struct identity *who,
    const char *username, bool *out)
{
	struct identity_args args = args_of(who);
	struct arena *a = arena_open(SMALL_ARENA);
	struct identity_found found;
	const struct err *e;

	*out = false;
	args.login = username;
	e = db_row(db, a,
	    who->forge != NULL ? &sql_identity_deleted :
				 &sql_identity_deleted_name,
	    &args, &found);
	if (e == NULL)
		*out = found.n != 0;
	arena_close(a);
	return e;
}

const struct err *
identity_bind(struct db *db, const struct identity *who)
{
	const struct identity_args args = args_of(who);
	const struct err *e;
	struct db_done done;

	if ((e = db_exec(db, &sql_identity_bind, &args, &done)) != NULL)
		return e;
	if (done.affected == 0)
		return err_new(ERR_CONFLICT, "user %lld is bound already",
		    (long long)who->user_id);
	return NULL;
}

const struct err *
identity_seen(struct db *db, int64_t user_id)
{
	const struct identity_args args = { .user_id = user_id };

	return db_exec(db, &sql_identity_seen, &args, NULL);
}

const struct err *
identity_claim(struct db *db, const struct identity *who, const char *login,
    bool *out)
{
	struct identity_args args = args_of(who);
	const struct err *e;
	struct db_done done;

	*out = false;
	args.login = login;
	if ((e = db_exec(db, &sql_identity_claim, &args, &done)) != NULL)
		return e;
	*out = done.affected == 1;
	return NULL;
}

/* The table's collation treats names as equal that differ in case or accents;
 * nginx, which checked the password, does not. */
const struct err *
principal_by_name(struct db *db, struct arena *a, const char *username,
    struct principal *out)
{
	const struct identity_args args = { .login = username };
	const struct err *e;

	if ((e = db_row(db, a, &sql_principal_by_name, &args, out)) != NULL)
		return e;
	if (strcmp(out->username, username) == 0)
		return NULL;
	(void)memset(out, 0, sizeof(*out));
	return err_new(ERR_NOTFOUND, "%s differs in case or accents", username);
}
