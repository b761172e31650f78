/* SPDX-License-Identifier: ISC */
/* Members of projects: the role of a user in one project. */
#ifndef SLIPWAY_STORE_MEMBER_H
#define SLIPWAY_STORE_MEMBER_H

#include "db/db.h"
#include "store/page.h"
#include "store/role.h"

struct member {
	int64_t project_id;
	int64_t user_id;
	const char *username;
	const char *role;
	struct when created_at;
	int64_t version;
};

extern const struct shape member_shape;

/* Objects that lead to a project. */
enum member_of {
	MEMBER_PROJECT,
	MEMBER_PIPELINE,
	MEMBER_STEP,
	MEMBER_ENVIRONMENT,
	MEMBER_SCHEDULE,
	MEMBER_NOTIFIER,
	MEMBER_DEPLOYMENT,
	MEMBER_USER, /* a member of a project of the user, or the user */
	MEMBER__MAX
};

/* The role that the user has as a member of the project to which the object
 * belongs, viewer for MEMBER_USER; ROLE_NONE if there is no such object, or if
 * the user is not a member. */
MUSTCHECK const struct err *member_role(struct db *, struct arena *,
    enum member_of, int64_t id, int64_t user_id, enum role *out);

/* The highest role that the user has as a member of any project; ROLE_NONE if
 * there is none. */
MUSTCHECK const struct err *member_highest(struct db *, struct arena *,
    int64_t user_id, enum role *out);
/* Lists the projects of which the user is a member; only project_id is set. */
MUSTCHECK const struct err *member_projects(struct db *, struct arena *,
    int64_t user_id, struct list *out);

/* Ordered by username; live users only. */
MUSTCHECK const struct err *member_page(struct db *, struct arena *,
    int64_t project_id, struct page *, struct list *out);
/* ERR_NOTFOUND unless the live user is a member. */
MUSTCHECK const struct err *member_find(struct db *, struct arena *,
    int64_t project_id, int64_t user_id, struct member *out);
/* Adds the member or changes the role. */
MUSTCHECK const struct err *member_put(struct db *, const struct member *);
MUSTCHECK const struct err *member_remove(struct db *, const struct member *);
/* Removes a user from all projects. */
MUSTCHECK const struct err *member_remove_user(struct db *, int64_t user_id);

#endif
