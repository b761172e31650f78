/* SPDX-License-Identifier: ISC */
#include "store/member.h"

#include "store/store.h"

static const char *const roles[] = { "viewer", "deployer", "maintainer", NULL };

#define M(m, ...) FIELD(struct member, m, __VA_ARGS__)
static const struct field member_fields[] = {
	M(user_id, FIELD_OUT, .doc = "Id of the user."),
	M(username, FIELD_OUT, .doc = "Username."),
	M(role, FIELD_OUT | FIELD_IN | FIELD_MUST, .values = roles,
	    .named = "MemberRole",
	    .doc = "Role in the project. It applies if it is higher than the "
		   "user's own role."),
	M(created_at, FIELD_OUT, .doc = "Time at which the user was added."),
	FIELD_END,
};
const struct shape member_shape = {
	.name = "Member",
	.fields = member_fields,
	.size = sizeof(struct member),
	.doc = "A user with a role in one project.",
};

/* The role that an object gives to a user. */
struct role_query {
	int64_t user_id;
	int64_t id;
	const char *role;
};
struct member_query {
	int64_t project_id;
	int64_t limit;
	int64_t offset;
};

#include "store/member.sql.h"

static const struct stmt *const role_stmts[MEMBER__MAX] = {
	[MEMBER_PROJECT] = &sql_member_role_project,
	[MEMBER_PIPELINE] = &sql_member_role_pipeline,
	[MEMBER_STEP] = &sql_member_role_step,
	[MEMBER_ENVIRONMENT] = &sql_member_role_environment,
	[MEMBER_SCHEDULE] = &sql_member_role_schedule,
	[MEMBER_NOTIFIER] = &sql_member_role_notifier,
	[MEMBER_DEPLOYMENT] = &sql_member_role_deployment,
	[MEMBER_USER] = &sql_member_role_user,
};

/* Removes the members of a deleted project. */
static const struct err *
remove_of_project(struct db *db, int64_t project_id)
{
	const struct member_query args = { .project_id = project_id };

	return db_exec(db, &sql_member_remove_of, &args, NULL);
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
	e = db_row(db, a, &sql_member_highest, &args, &found);
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

	return db_rows(db, a, &sql_member_projects, &args, out);
}

const struct err *
member_page(struct db *db, struct arena *a, int64_t project_id, struct page *p,
    struct list *out)
{
	const struct member_query q = { .project_id = project_id,
		.limit = p->limit,
		.offset = page_offset(p) };

	return page_read(db, a, &sql_member_count, &sql_member_page, &q, p,
	    out);
}

const struct err *
member_find(struct db *db, struct arena *a, int64_t project_id, int64_t user_id,
    struct member *out)
{
	const struct member args = { .project_id = project_id,
		.user_id = user_id };
	const struct err *e;

	e = db_row(db, a, &sql_member_find, &args, out);
	out->project_id = project_id;
	return e;
}

const struct err *
member_put(struct db *db, const struct member *member)
{
	return db_exec(db, &sql_member_put, member, NULL);
}

const struct err *
member_remove(struct db *db, const struct member *member)
{
	return db_exec(db, &sql_member_remove, member, NULL);
}

const struct err *
member_remove_user(struct db *db, int64_t user_id)
{
	const struct member args = { .user_id = user_id };

	return db_exec(db, &sql_member_remove_user, &args, NULL);
}
