/* SPDX-License-Identifier: ISC */
#include "store/user.h"

#include <string.h>

#include "core/str.h"
#include "store/columns.h"
#include "store/gittoken.h"
#include "store/like.h"
#include "store/member.h"
#include "store/session.h"
#include "store/store.h"

#define A(m) FIELD(struct user, m, 0)

static const char *const statuses[] = { "active", "inactive", NULL };

/* clang-format off */
#define USER(X, T)							\
	X(T, KEY, id, FIELD_OUT, .doc = "Id of the user.")		\
	X(T, SET, username, FIELD_OUT | FIELD_IN | FIELD_MUST, .min = 1, \
	    .max = 100, .pattern = "[A-Za-z0-9._@+-]+",			\
	    .doc = "Unique login, the same as at the Git server.")	\
	X(T, SET, name, FIELD_OUT | FIELD_IN | FIELD_NULL | FIELD_LINE,	\
	    .max = 200, .doc = "Full name.")				\
	X(T, SET, email, FIELD_OUT | FIELD_IN | FIELD_NULL | FIELD_LINE, \
	    .max = 254, .pattern = "[^@[:space:]]+@[^@[:space:]]+",	\
	    .doc = "Email address.")					\
	X(T, SET, avatar_url, FIELD_OUT | FIELD_IN | FIELD_NULL | FIELD_LINE, \
	    .max = 1000, .pattern = "https?://[^[:space:]]+",		\
	    .doc = "URL of the user's picture.")			\
	X(T, SET, role, FIELD_OUT | FIELD_IN | FIELD_MUST,		\
	    .values = role_names, .named = "Role",			\
	    .doc = "Role of the user.")					\
	X(T, SET, status, FIELD_OUT | FIELD_IN, .values = statuses,	\
	    .named = "UserStatus",					\
	    .doc = "An inactive user's tokens and sessions are invalid.") \
	X(T, READ, created_at, FIELD_OUT, .doc = "Time of creation.")	\
	X(T, READ, last_login_at, FIELD_OUT | FIELD_NULL,		\
	    .doc = "Last sign-in at the Git server.")			\
	X(T, READ, version, 0, .doc = "Number of changes.")

static const struct field user_fields[] = {
	COLUMNS_FIELDS(USER, struct user)
};
/* clang-format on */

const struct shape user_shape = {
	.name = "User",
	.fields = user_fields,
	.size = sizeof(struct user),
	.doc = "A person who may sign in.",
};

#define COLUMNS COLUMNS_SELECT(USER)

struct user_account {
	const char *forge;
	const char *forge_id;
};

/* An unset filter lists all values, so that one statement serves all searches
 * and the index provides the order. */
struct user_query {
	const char *like;
	const char *status[2];
	const char *role[5];
	int64_t member;
	int64_t limit;
	int64_t offset;
};

/* clang-format off */
#define Q(m) FIELD(struct user_query, m, 0, .doc = NULL)
#define FILTER_ARGS							\
	Q(like), Q(like), Q(like), Q(status[0]), Q(status[1]),		\
	Q(role[0]), Q(role[1]), Q(role[2]), Q(role[3]),	\
	Q(role[4])
/* clang-format on */
#define WHERE                                                                  \
	" WHERE valid = 1 AND (username LIKE ? ESCAPE '!'"                     \
	" OR name LIKE ? ESCAPE '!' OR email LIKE ? ESCAPE '!')"               \
	" AND status IN (?, ?) AND role IN (?, ?, ?, ?, ?)"
#define FILTER " FROM user" WHERE
/* The members of a member's projects. */
#define FILTER_BY                                                              \
	" FROM (SELECT DISTINCT o.user_id FROM member o WHERE o.project_id"    \
	" IN " MEMBER_PROJECTS                                                 \
	") w STRAIGHT_JOIN user ON id = w.user_id" WHERE

static const struct field page_args[] = { FILTER_ARGS, Q(limit), Q(offset),
	FIELD_END };
static const struct field count_args[] = { FILTER_ARGS, FIELD_END };
#define BY_ARGS Q(member), FILTER_ARGS
static const struct field page_by_args[] = { BY_ARGS, Q(limit), Q(offset),
	FIELD_END };
static const struct field count_by_args[] = { BY_ARGS, FIELD_END };
static const struct field id_args[] = { A(id), FIELD_END };
static const struct field name_args[] = { A(username), FIELD_END };
#define B(m) FIELD(struct user_account, m, 0)
static const struct field account_args[] = { B(forge), B(forge_id), FIELD_END };

static const struct stmt page = {
	.name = "user_page",
	.sql = "SELECT " COLUMNS FILTER
	       " ORDER BY username, id LIMIT ? OFFSET ?",
	.args = page_args,
	.row = user_fields,
	.rowsize = sizeof(struct user),
};
static const struct stmt count = {
	.name = "user_count",
	.sql = "SELECT COUNT(*) AS n" FILTER,
	.args = count_args,
	.row = page_count_row,
	.rowsize = sizeof(struct page_count),
};
static const struct stmt page_by = {
	.name = "user_page_by",
	.sql = "SELECT " COLUMNS FILTER_BY
	       " ORDER BY username, id LIMIT ? OFFSET ?",
	.args = page_by_args,
	.row = user_fields,
	.rowsize = sizeof(struct user),
};
static const struct stmt count_by = {
	.name = "user_count_by",
	.sql = "SELECT COUNT(*) AS n" FILTER_BY,
	.args = count_by_args,
	.row = page_count_row,
	.rowsize = sizeof(struct page_count),
};
static const struct stmt by_id = {
	.name = "user_by_id",
	.sql = "SELECT " COLUMNS " FROM user WHERE id = ? AND valid = 1",
	.args = id_args,
	.row = user_fields,
	.rowsize = sizeof(struct user),
};
static const struct field name_row[] = { A(username), FIELD_END };
static const struct stmt name_of = {
	.name = "user_name_of",
	.sql = "SELECT username FROM user WHERE id = ?",
	.args = id_args,
	.row = name_row,
	.rowsize = sizeof(struct user),
};
static const struct stmt lock = {
	.name = "user_lock",
	.sql = "SELECT " COLUMNS
	       " FROM user WHERE id = ? AND valid = 1 FOR UPDATE",
	.args = id_args,
	.row = user_fields,
	.rowsize = sizeof(struct user),
};
static const struct stmt by_name = {
	.name = "user_by_name",
	.sql = "SELECT " COLUMNS " FROM user WHERE live_username = ?",
	.args = name_args,
	.row = user_fields,
	.rowsize = sizeof(struct user),
};
static const struct stmt by_account = {
	.name = "user_by_account",
	.sql = "SELECT " COLUMNS " FROM user WHERE forge = ? AND forge_id = ?"
	       " AND valid = 1 FOR UPDATE",
	.args = account_args,
	.row = user_fields,
	.rowsize = sizeof(struct user),
};
/* clang-format off */
static const struct field insert_args[] = {
	COLUMNS_INSERT_ARGS(USER, struct user)
};
/* clang-format on */
static const struct stmt insert = {
	.name = "user_insert",
	.sql = COLUMNS_INSERT("user", USER),
	.args = insert_args,
};
/* clang-format off */
static const struct field update_args[] = {
	COLUMNS_UPDATE_ARGS(USER, struct user)
};
/* clang-format on */
static const struct stmt update = {
	.name = "user_update",
	.sql = COLUMNS_UPDATE("user", USER),
	.args = update_args,
};
static const struct stmt delete_user = {
	.name = "user_delete",
	.sql = "UPDATE user SET valid = 0, version = version + 1,"
	       " updated_at = CURRENT_TIMESTAMP(3) WHERE id = ? AND valid = 1",
	.args = id_args,
};
static const struct stmt delete_tokens = {
	.name = "user_delete_tokens",
	.sql = "UPDATE api_token SET valid = 0 WHERE user_id = ?",
	.args = id_args,
};
/* Locked, so that two admins cannot demote each other concurrently. */
static const struct stmt admins = {
	.name = "user_admins",
	.sql = "SELECT " COLUMNS " FROM user WHERE valid = 1"
	       " AND role = 'admin' AND status = 'active' FOR UPDATE",
	.row = user_fields,
	.rowsize = sizeof(struct user),
};

static const struct stmt *const user_stmts[] = {
	&page,
	&count,
	&page_by,
	&count_by,
	&by_id,
	&name_of,
	&lock,
	&by_name,
	&by_account,
	&insert,
	&update,
	&delete_user,
	&delete_tokens,
	&admins,
	NULL,
};

const struct store user_store = {
	.stmts = user_stmts,
};

const struct err *
user_page(struct db *db, struct arena *a, const struct user_filter *f,
    struct page *p, struct list *out)
{
	struct user_query q = { .member = p->member,
		.limit = p->limit,
		.offset = page_offset(p) };
	size_t i;

	q.like = f->keyword == NULL ? "%" : like_substring(a, f->keyword);
	for (i = 0; i < 2; i++)
		q.status[i] = f->status == NULL ? statuses[i] : f->status;
	for (i = 0; i < 5; i++)
		q.role[i] = f->role == NULL ? role_names[i] : f->role;
	if (p->member != 0)
		return page_read(db, a, &count_by, &page_by, &q, p, out);
	return page_read(db, a, &count, &page, &q, p, out);
}

const struct err *
user_by_id(struct db *db, struct arena *a, int64_t id, struct user *out)
{
	const struct user args = { .id = id };

	return db_row(db, a, &by_id, &args, out);
}

const struct err *
user_name_of(struct db *db, struct arena *a, int64_t id, const char **out)
{
	const struct user args = { .id = id };
	struct user found = { .username = NULL };
	const struct err *e = db_row(db, a, &name_of, &args, &found);

	*out = found.username;
	return e;
}

const struct err *
user_lock(struct db *db, struct arena *a, int64_t id, struct user *out)
{
	const struct user args = { .id = id };

	return db_row(db, a, &lock, &args, out);
}

const struct err *
user_by_name(struct db *db, struct arena *a, const char *username,
    struct user *out)
{
	const struct user args = { .username = username };

	return db_row(db, a, &by_name, &args, out);
}

const struct err *
user_by_account(struct db *db, struct arena *a, const char *forge,
    const char *forge_id, struct user *out)
{
	const struct user_account args = { .forge = forge,
		.forge_id = forge_id };

	return db_row(db, a, &by_account, &args, out);
}

static const struct err *
taken(const struct err *e)
{
	if (e != NULL && e->sys == DB_DUPLICATE)
		return err_public(ERR_CONFLICT,
		    "Another user has this username. Choose another.");
	return e;
}

/* Checks that an active admin remains without this user. */
static const struct err *
admin_remains(struct db *db, int64_t id)
{
	struct arena *a = arena_open((size_t)1 << 20);
	const struct user *u;
	const struct err *e;
	struct list list;
	size_t i, others = 0;
	bool is_one = false;

	if ((e = db_rows(db, a, &admins, NULL, &list)) != NULL)
		goto out;
	u = list.items;
	for (i = 0; i < list.n; i++) {
		if (u[i].id == id)
			is_one = true;
		else
			others++;
	}
	if (is_one && others == 0)
		e = err_public(ERR_CONFLICT,
		    "This is the last active admin. Create another one first.");
out:
	arena_close(a);
	return e;
}

static bool
is_active_admin(const struct user *u)
{
	return str_eq(u->role, "admin") && str_eq(u->status, "active");
}

const struct err *
user_judge(struct db *db, const struct user *u, struct faults *faults)
{
	const struct err *e;
	struct user other;

	if (u->username != NULL) {
		e = user_by_name(db, faults->a, u->username, &other);
		if (e != NULL && e->code != ERR_NOTFOUND)
			return e;
		if (e == NULL && other.id != u->id)
			faults_conflict(faults, "/username",
			    "another user has this name; choose another");
	}
	if (u->id == 0 || is_active_admin(u))
		return NULL;
	e = admin_remains(db, u->id);
	if (e == NULL || e->code != ERR_CONFLICT)
		return e;
	faults_conflict(faults, str_eq(u->role, "admin") ? "/status" : "/role",
	    "this is the last active admin; create another one first");
	return NULL;
}

const struct err *
user_insert(struct db *db, const struct user *u, int64_t *id)
{
	struct user row = *u;
	const struct err *e;
	struct db_done done;

	*id = 0;
	if (row.status == NULL)
		row.status = statuses[0];
	if ((e = db_exec(db, &insert, &row, &done)) != NULL)
		return taken(e);
	*id = done.insert_id;
	return NULL;
}

const struct err *
user_update(struct db *db, const struct user *u)
{
	const struct err *e;

	if (!is_active_admin(u) && (e = admin_remains(db, u->id)) != NULL)
		return e;
	if (!str_eq(u->status, "active") &&
	    (e = session_delete_of(db, u->id)) != NULL)
		return e;
	return taken(db_exec(db, &update, u, NULL));
}

const struct err *
user_delete(struct db *db, int64_t id)
{
	const struct user args = { .id = id };
	const struct err *e;

	if ((e = admin_remains(db, id)) != NULL)
		return e;
	if ((e = db_exec(db, &delete_tokens, &args, NULL)) != NULL ||
	    (e = session_delete_of(db, id)) != NULL ||
	    (e = gittoken_delete(db, id)) != NULL ||
	    (e = member_remove_user(db, id)) != NULL)
		return e;
	return db_exec(db, &delete_user, &args, NULL);
}
