/* SPDX-License-Identifier: ISC */
#include "store/user.h"

#include <string.h>

#include "core/str.h"
#include "store/gittoken.h"
#include "store/like.h"
#include "store/member.h"
#include "store/session.h"
#include "store/store.h"

static const char *const statuses[] = { "active", "inactive", NULL };

#define U(m, ...) FIELD(struct user, m, __VA_ARGS__)
static const struct field user_fields[] = {
	U(id, FIELD_OUT, .doc = "Id of the user."),
	U(username, FIELD_OUT | FIELD_IN | FIELD_MUST, .min = 1, .max = 100,
	    .pattern = "[A-Za-z0-9._@+-]+",
	    .doc = "Unique login, the same as at the Git server."),
	U(name, FIELD_OUT | FIELD_IN | FIELD_NULL | FIELD_LINE, .max = 200,
	    .doc = "Full name."),
	U(email, FIELD_OUT | FIELD_IN | FIELD_NULL | FIELD_LINE, .max = 254,
	    .pattern = "[^@[:space:]]+@[^@[:space:]]+",
	    .doc = "Email address."),
	U(avatar_url, FIELD_OUT | FIELD_IN | FIELD_NULL | FIELD_LINE,
	    .max = 1000, .pattern = "https?://[^[:space:]]+",
	    .doc = "URL of the user's picture."),
	U(role, FIELD_OUT | FIELD_IN | FIELD_MUST, .values = role_names,
	    .named = "Role", .doc = "Role of the user."),
	U(status, FIELD_OUT | FIELD_IN, .values = statuses,
	    .named = "UserStatus",
	    .doc = "An inactive user's tokens and sessions are invalid."),
	U(created_at, FIELD_OUT, .doc = "Time of creation."),
	U(last_login_at, FIELD_OUT | FIELD_NULL,
	    .doc = "Last sign-in at the Git server."),
	FIELD_END,
};

const struct shape user_shape = {
	.name = "User",
	.fields = user_fields,
	.size = sizeof(struct user),
	.doc = "A person who may sign in.",
};

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

#include "store/user.sql.h"

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
		return page_read(db, a, &sql_user_count_by, &sql_user_page_by,
		    &q, p, out);
	return page_read(db, a, &sql_user_count, &sql_user_page, &q, p, out);
}

const struct err *
user_by_id(struct db *db, struct arena *a, int64_t id, struct user *out)
{
	const struct user args = { .id = id };

	return db_row(db, a, &sql_user_by_id, &args, out);
}

const struct err *
user_name_of(struct db *db, struct arena *a, int64_t id, const char **out)
{
	const struct user args = { .id = id };
	struct user found = { .username = NULL };
	const struct err *e = db_row(db, a, &sql_user_name_of, &args, &found);

	*out = found.username;
	return e;
}

const struct err *
user_lock(struct db *db, struct arena *a, int64_t id, struct user *out)
{
	const struct user args = { .id = id };

	return db_row(db, a, &sql_user_lock, &args, out);
}

const struct err *
user_by_name(struct db *db, struct arena *a, const char *username,
    struct user *out)
{
	const struct user args = { .username = username };

	return db_row(db, a, &sql_user_by_name, &args, out);
}

const struct err *
user_by_account(struct db *db, struct arena *a, const char *forge,
    const char *forge_id, struct user *out)
{
	const struct user_account args = { .forge = forge,
		.forge_id = forge_id };

	return db_row(db, a, &sql_user_by_account, &args, out);
}

static const struct err *
name_taken(const struct err *e)
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

	if ((e = db_rows(db, a, &sql_user_admins, NULL, &list)) != NULL)
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
	if ((e = db_exec(db, &sql_user_insert, &row, &done)) != NULL)
		return name_taken(e);
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
	return name_taken(db_exec(db, &sql_user_update, u, NULL));
}

const struct err *
user_delete(struct db *db, int64_t id)
{
	const struct user args = { .id = id };
	const struct err *e;

	if ((e = admin_remains(db, id)) != NULL)
		return e;
	if ((e = db_exec(db, &sql_user_delete_tokens, &args, NULL)) != NULL ||
	    (e = session_delete_of(db, id)) != NULL ||
	    (e = gittoken_delete(db, id)) != NULL ||
	    (e = member_remove_user(db, id)) != NULL)
		return e;
	return db_exec(db, &sql_user_delete, &args, NULL);
}
