/* SPDX-License-Identifier: ISC */
#include "api/resources.h"
#include "store/user.h"
#include "web/audited.h"

struct work {
	struct req *rq;
	struct user u;
};

static const struct err *
page_of_all(struct req *rq, struct page *p, struct list *out)
{
	const struct user_filter all = { .keyword = NULL };

	return user_page(rq->db, rq->a, &all, p, out);
}

static const struct err *
page_of_found(struct req *rq, struct page *p, struct list *out)
{
	const struct user_filter filter = { .keyword = req_str(rq, "keyword"),
		.status = req_str(rq, "status"),
		.role = req_str(rq, "role") };

	return user_page(rq->db, rq->a, &filter, p, out);
}

static const struct err *
api_user_list(struct req *rq)
{
	return answer_pages(rq, &user_shape, page_of_all);
}

static const struct err *
api_user_search(struct req *rq)
{
	return answer_pages(rq, &user_shape, page_of_found);
}

static const struct err *
api_user_show(struct req *rq)
{
	const struct err *e;
	struct user u;

	if ((e = user_by_id(rq->db, rq->a, rq->id[0], &u)) != NULL)
		return e;
	answer_item(rq, &user_shape, &u, u.version);
	return NULL;
}

static const struct err *
api_user_judge(struct req *rq, const void *item)
{
	return user_judge(rq->db, item, &rq->faults);
}

static const struct err *
create_body(struct db *db, void *context)
{
	struct work *w = context;
	struct req *rq = w->rq;
	const struct user *sent = rq->body;
	const struct err *e;
	int64_t id;

	if ((e = req_judge(rq)) != NULL)
		return e;
	if ((e = user_insert(db, sent, &id)) != NULL)
		return req_taken(rq, e, sent);
	if ((e = audited_change(rq, AUDIT_OF_USER, id, 0)) != NULL)
		return e;
	return user_by_id(db, rq->a, id, &w->u);
}

static const struct err *
api_user_create(struct req *rq)
{
	struct work w = { .rq = rq };
	const struct err *e;

	if ((e = req_transaction(rq, create_body, &w)) != NULL)
		return e;
	answer_location(rq, "/api/user/detail/%lld", (long long)w.u.id);
	answer_item(rq, &user_shape, &w.u, w.u.version);
	return NULL;
}

static const struct err *
change_body(struct db *db, void *context)
{
	struct work *w = context;
	struct req *rq = w->rq;
	struct user old;
	const struct err *e;

	if ((e = user_lock(db, rq->a, rq->id[0], &w->u)) != NULL)
		return e;
	old = w->u;
	if ((e = req_update(rq, &user_shape, old.version, &w->u)) != NULL ||
	    audited_same(rq, &user_shape, &old, &w->u))
		return e;
	if ((e = user_update(db, &w->u)) != NULL)
		return req_taken(rq, e, &w->u);
	if ((e = audited_change(rq, AUDIT_OF_USER, old.id, 0)) != NULL)
		return e;
	return user_by_id(db, rq->a, rq->id[0], &w->u);
}

static const struct err *
api_user_change(struct req *rq)
{
	struct work w = { .rq = rq };
	const struct err *e;

	if ((e = req_transaction(rq, change_body, &w)) != NULL)
		return e;
	answer_item(rq, &user_shape, &w.u, w.u.version);
	return NULL;
}

static const struct err *
remove_body(struct db *db, void *context)
{
	struct work *w = context;
	const struct err *e;

	if ((e = user_lock(db, w->rq->a, w->rq->id[0], &w->u)) != NULL)
		return e;
	if ((e = req_match(w->rq, &user_shape, w->u.version)) != NULL)
		return e;
	if ((e = user_delete(db, w->u.id)) != NULL)
		return e;
	return audited_change(w->rq, AUDIT_OF_USER, w->u.id, 0);
}

static const struct err *
api_user_remove(struct req *rq)
{
	struct work w = { .rq = rq };

	return req_transaction(rq, remove_body, &w);
}

static const char *const user_statuses[] = { "active", "inactive", NULL };
static const struct route_param search_params[] = {
	ROUTE_PAGE,
	{ .name = "keyword",
	    .type = PARAM_STR,
	    .max = 100,
	    .doc = "Part of the username, name or email address." },
	{ .name = "status",
	    .type = PARAM_STR,
	    .values = user_statuses,
	    .named = "UserStatus",
	    .doc = "Only users with this status." },
	{ .name = "role",
	    .type = PARAM_STR,
	    .values = role_names,
	    .named = "Role",
	    .doc = "Only users with this role." },
	PARAM_END,
};

static const struct route routes[] = {
	LIST("/api/user/list", ROLE_GUEST, route_page, api_user_list,
	    "listUsers", "List users, ordered by username", user_shape),
	LIST("/api/user/search", ROLE_GUEST, search_params, api_user_search,
	    "searchUsers", "Search users", user_shape),
	SHOW("/api/user/detail/{id}", ROLE_VIEWER, api_user_show, "getUser",
	    "Get a user", user_shape),
	CREATE("/api/user", ROLE_ADMIN, api_user_create, api_user_judge,
	    "createUser", "Create a user", user_shape),
	CHANGE("/api/user/{id}", ROLE_ADMIN, api_user_change, api_user_judge,
	    "updateUser", "Update a user", user_shape),
	REMOVE("/api/user/{id}", ROLE_ADMIN, ROUTE_GUARDED, api_user_remove,
	    "deleteUser", "Delete a user and the user's tokens",
	    route_conflict),
	ROUTE_END,
};

const struct resource users_resource = {
	.tag = "users",
	.about = "Users and their roles.",
	.routes = routes,
};
