/* SPDX-License-Identifier: ISC */
#include "store/member.h"

#include "store/store.h"

static const char *const roles[] = { "viewer", "deployer", "maintainer", NULL };

/* clang-format off */
#define M(m, ...) FIELD(struct member, m, __VA_ARGS__)
static const struct field member_fields[] = {
	M(user_id, FIELD_OUT, .doc = "Id of the user."),
	M(username, FIELD_OUT, .doc = "Username."),
	M(role, FIELD_OUT | FIELD_IN | FIELD_MUST, .values = roles,
	    .named = "MemberRole",
	    .doc = "Role in the project. It applies if it is higher than the "
		   "user's own role."),
	M(created_at, FIELD_OUT, .doc = "Time at which the user was added."),
	M(version, 0),
	FIELD_END,
};
/* clang-format on */
const struct shape member_shape = {
	.name = "Member",
	.fields = member_fields,
	.size = sizeof(struct member),
	.doc = "A user with a role in one project.",
};

/* --- the role that an object gives to a user */

struct role_query {
	int64_t user_id;
	int64_t id;
	const char *role;
};
#define R(m) FIELD(struct role_query, m, 0)
static const struct field role_args[] = { R(user_id), R(id), FIELD_END };
static const struct field role_row[] = { R(role), FIELD_END };

/* clang-format off */
#define OWNED(table)							\
	"SELECT m.role FROM " table " o JOIN member m"			\
	" ON m.project_id = o.project_id AND m.user_id = ? WHERE o.id = ?"
#define ROLES(X)							\
	X(PROJECT, "SELECT m.role FROM member m"			\
	    " WHERE m.user_id = ? AND m.project_id = ?")		\
	X(PIPELINE, OWNED("pipeline"))					\
	X(STEP, "SELECT m.role FROM step s"				\
	    " JOIN pipeline o ON o.id = s.pipeline_id JOIN member m"	\
	    " ON m.project_id = o.project_id AND m.user_id = ?"		\
	    " WHERE s.id = ?")						\
	X(ENVIRONMENT, OWNED("environment"))				\
	X(SCHEDULE, OWNED("schedule"))					\
	X(NOTIFIER, OWNED("notifier"))					\
	X(DEPLOYMENT, OWNED("deployment"))				\
	X(USER, "SELECT 'viewer' AS role FROM user s JOIN user u"	\
	    " WHERE s.id = ? AND u.id = ? AND (u.id = s.id OR EXISTS ("	\
	    "SELECT 1 FROM member m JOIN member o"			\
	    " ON o.project_id = m.project_id"				\
	    " WHERE m.user_id = s.id AND o.user_id = u.id))")
#define X(of, text)							\
	static const struct stmt role_##of = {				\
		.name = "member_role_" #of,				\
		.sql = text,						\
		.args = role_args,					\
		.row = role_row,					\
		.rowsize = sizeof(struct role_query),			\
	};
ROLES(X)
#undef X
/* clang-format on */
static const struct stmt *const role_stmts[MEMBER__MAX] = {
#define X(of, text) [MEMBER_##of] = &role_##of,
	ROLES(X)
#undef X
};

/* --- the members of a project */

struct member_query {
	int64_t project_id;
	int64_t limit;
	int64_t offset;
};
#define Q(m) FIELD(struct member_query, m, 0)
static const struct field page_args[] = { Q(project_id), Q(limit), Q(offset),
	FIELD_END };
static const struct field project_args[] = { Q(project_id), FIELD_END };
static const struct field key_args[] = { M(project_id, 0), M(user_id, 0),
	FIELD_END };
static const struct field put_args[] = { M(project_id, 0), M(user_id, 0),
	M(role, 0), FIELD_END };
static const struct field user_args[] = { M(user_id, 0), FIELD_END };

static const struct field projects_row[] = { M(project_id, 0), FIELD_END };
static const struct stmt projects = {
	.name = "member_projects",
	.sql = "SELECT project_id FROM member WHERE user_id = ?",
	.args = user_args,
	.row = projects_row,
	.rowsize = sizeof(struct member),
};
static const struct field highest_row[] = { M(role, 0), FIELD_END };
static const struct stmt highest = {
	.name = "member_highest",
	.sql = "SELECT role FROM member WHERE user_id = ?"
	       " ORDER BY role DESC LIMIT 1",
	.args = user_args,
	.row = highest_row,
	.rowsize = sizeof(struct member),
};
#define FROM                                                                   \
	" FROM member m JOIN user u ON u.id = m.user_id AND u.valid = 1"       \
	" WHERE m.project_id = ?"
#define SELECT                                                                 \
	"SELECT m.user_id, u.username, m.role, m.created_at, m.version" FROM
static const struct stmt page = {
	.name = "member_page",
	.sql = SELECT " ORDER BY u.username, u.id LIMIT ? OFFSET ?",
	.args = page_args,
	.row = member_fields,
	.rowsize = sizeof(struct member),
};
static const struct stmt count = {
	.name = "member_count",
	.sql = "SELECT COUNT(*) AS n" FROM,
	.args = project_args,
	.row = page_count_row,
	.rowsize = sizeof(struct page_count),
};
static const struct stmt find = {
	.name = "member_find",
	.sql = SELECT " AND m.user_id = ?",
	.args = key_args,
	.row = member_fields,
	.rowsize = sizeof(struct member),
};
static const struct stmt put = {
	.name = "member_put",
	.sql = "INSERT INTO member (project_id, user_id, role) VALUES (?, ?, ?)"
	       " ON DUPLICATE KEY UPDATE role = VALUES(role),"
	       " version = version + 1",
	.args = put_args,
};
static const struct stmt remove_one = {
	.name = "member_remove",
	.sql = "DELETE FROM member WHERE project_id = ? AND user_id = ?",
	.args = key_args,
};
static const struct stmt remove_user = {
	.name = "member_remove_user",
	.sql = "DELETE FROM member WHERE user_id = ?",
	.args = user_args,
};
static const struct stmt remove_of = {
	.name = "member_remove_of",
	.sql = "DELETE FROM member WHERE project_id = ?",
	.args = project_args,
};

static const struct stmt *const member_stmts[] = {
#define X(of, text) &role_##of,
	ROLES(X)
#undef X
	    & projects,
	&highest,
	&page,
	&count,
	&find,
	&put,
	&remove_one,
	&remove_user,
	&remove_of,
	NULL,
};

/* Removes the members of a deleted project. */
static const struct err *
remove_of_project(struct db *db, int64_t project_id)
{
	const struct member_query args = { .project_id = project_id };

	return db_exec(db, &remove_of, &args, NULL);
}

const struct store member_store = {
	.stmts = member_stmts,
	.with_project = remove_of_project,
};

const struct err *
member_role(struct db *db, struct arena *a, enum member_of of, int64_t id,
    int64_t user_id, enum role *out)
{
	const struct role_query args = { .user_id = user_id, .id = id };
	struct role_query found;
	const struct err *e;

	*out = ROLE_NONE;
	e = db_row(db, a, role_stmts[of], &args, &found);
	if (e != NULL)
		return e->code == ERR_NOTFOUND ? NULL : e;
	*out = role_of(found.role);
	return NULL;
}

const struct err *
member_highest(struct db *db, struct arena *a, int64_t user_id, enum role *out)
{
	const struct member args = { .user_id = user_id };
	struct member found;
	const struct err *e;

	*out = ROLE_NONE;
	e = db_row(db, a, &highest, &args, &found);
	if (e != NULL)
		return e->code == ERR_NOTFOUND ? NULL : e;
	*out = role_of(found.role);
	return NULL;
}

const struct err *
member_projects(struct db *db, struct arena *a, int64_t user_id,
    struct list *out)
{
	const struct member args = { .user_id = user_id };

	return db_rows(db, a, &projects, &args, out);
}

const struct err *
member_page(struct db *db, struct arena *a, int64_t project_id, struct page *p,
    struct list *out)
{
	const struct member_query q = { .project_id = project_id,
		.limit = p->limit,
		.offset = page_offset(p) };

	return page_read(db, a, &count, &page, &q, p, out);
}

const struct err *
member_find(struct db *db, struct arena *a, int64_t project_id, int64_t user_id,
    struct member *out)
{
	const struct member args = { .project_id = project_id,
		.user_id = user_id };
	const struct err *e;

	e = db_row(db, a, &find, &args, out);
	out->project_id = project_id;
	return e;
}

const struct err *
member_put(struct db *db, const struct member *member)
{
	return db_exec(db, &put, member, NULL);
}

const struct err *
member_remove(struct db *db, const struct member *member)
{
	return db_exec(db, &remove_one, member, NULL);
}

const struct err *
member_remove_user(struct db *db, int64_t user_id)
{
	const struct member args = { .user_id = user_id };

	return db_exec(db, &remove_user, &args, NULL);
}
