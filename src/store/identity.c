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

#define A(m) FIELD(struct identity_args, m, 0)
#define I(m) FIELD(struct identity, m, 0)
#define P(m) FIELD(struct principal, m, 0)

static const struct field who_args[] = { A(forge), A(forge_id), FIELD_END };
static const struct field user_args[] = { A(user_id), FIELD_END };
static const struct field login_args[] = { A(login), FIELD_END };
static const struct field identity_row[] = { I(user_id), I(forge), I(forge_id),
	FIELD_END };
static const struct stmt of_user = {
	.name = "identity_of",
	.sql = "SELECT id AS user_id, forge, forge_id FROM user"
	       " WHERE id = ? AND valid = 1",
	.args = user_args,
	.row = identity_row,
	.rowsize = sizeof(struct identity),
};
#define C(m) FIELD(struct account, m, 0)
static const struct field account_row[] = { C(user_id), C(forge), C(role),
	C(status), C(valid), FIELD_END };
static const struct stmt account_of = {
	.name = "identity_account",
	.sql = "SELECT id AS user_id, forge, role, status, valid FROM user"
	       " WHERE id = ?",
	.args = user_args,
	.row = account_row,
	.rowsize = sizeof(struct account),
};
static const struct field found_row[] = { FIELD(struct identity_found, n, 0),
	FIELD_END };
static const struct stmt deleted = {
	.name = "identity_deleted",
	.sql = "SELECT COUNT(*) AS n FROM (SELECT 1 FROM user WHERE forge = ?"
	       " AND forge_id = ? AND valid = 0 LIMIT 1) t",
	.args = who_args,
	.row = found_row,
	.rowsize = sizeof(struct identity_found),
};
static const struct stmt deleted_name = {
	.name = "identity_deleted_name",
	.sql = "SELECT COUNT(*) AS n FROM (SELECT 1 FROM user WHERE valid = 0"
	       " AND username = ? LIMIT 1) t",
	.args = login_args,
	.row = found_row,
	.rowsize = sizeof(struct identity_found),
};
static const struct field bind_args[] = { A(forge), A(forge_id), A(user_id),
	FIELD_END };
static const struct stmt bind_user = {
	.name = "identity_bind",
	.sql = "UPDATE user SET forge = ?, forge_id = ?"
	       " WHERE id = ? AND valid = 1 AND forge IS NULL",
	.args = bind_args,
};
static const struct stmt seen = {
	.name = "identity_seen",
	.sql = "UPDATE user SET last_login_at = NOW(3) WHERE id = ?",
	.args = user_args,
};
static const struct field claim_args[] = { A(forge), A(login), A(forge_id),
	FIELD_END };
static const struct stmt claim = {
	.name = "identity_claim",
	.sql = "INSERT IGNORE INTO admin_claim (forge, login, forge_id)"
	       " VALUES (?, ?, ?)",
	.args = claim_args,
};
static const struct field principal_row[] = { P(user_id), P(username), P(role),
	FIELD_END };
static const struct stmt by_name = {
	.name = "principal_by_name",
	.sql = "SELECT id AS user_id, username, role FROM user"
	       " WHERE live_username = ? AND status = 'active'",
	.args = login_args,
	.row = principal_row,
	.rowsize = sizeof(struct principal),
};

static const struct stmt *const identity_stmts[] = {
	&of_user,
	&account_of,
	&deleted,
	&deleted_name,
	&bind_user,
	&seen,
	&claim,
	&by_name,
	NULL,
};

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

	return db_row(db, a, &of_user, &args, out);
}

const struct err *
identity_account(struct db *db, struct arena *a, int64_t user_id,
    struct account *out)
{
	const struct identity_args args = { .user_id = user_id };

	return db_row(db, a, &account_of, &args, out);
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
	e = db_row(db, a, who->forge != NULL ? &deleted : &deleted_name, &args,
	    &found);
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

	if ((e = db_exec(db, &bind_user, &args, &done)) != NULL)
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

	return db_exec(db, &seen, &args, NULL);
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
	if ((e = db_exec(db, &claim, &args, &done)) != NULL)
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

	if ((e = db_row(db, a, &by_name, &args, out)) != NULL)
		return e;
	if (strcmp(out->username, username) == 0)
		return NULL;
	(void)memset(out, 0, sizeof(*out));
	return err_new(ERR_NOTFOUND, "%s differs in case or accents", username);
}
