/* SPDX-License-Identifier: ISC */
#include "api/resources.h"
#include "queue/deployment.h"
#include "store/member.h"
#include "store/project.h"
#include "web/audited.h"

struct work {
	struct req *rq;
	struct member member;
};

static const struct err *
page_of_list(struct req *rq, struct page *p, struct list *out)
{
	return member_page(rq->db, rq->a, rq->id[0], p, out);
}

static const struct err *
api_member_list(struct req *rq)
{
	struct project p;
	const struct err *e;

	if ((e = project_by_id(rq->db, rq->a, rq->id[0], &p)) != NULL)
		return e;
	return answer_pages(rq, &member_shape, page_of_list);
}

static const struct err *
api_member_judge(struct req *rq, const void *item)
{
	const struct member *m = item;

	if (m->role == NULL && !faults_has(&rq->faults, "/role"))
		faults_add(&rq->faults, "/role", "is missing");
	return NULL;
}

/* A guest must not learn which other users exist. */
static const struct err *
user_seen(struct req *rq)
{
	const struct err *e;
	enum role role;

	if (rq->member == 0)
		return NULL;
	if ((e = member_role(rq->db, rq->a, MEMBER_USER, rq->id[1], rq->member,
		 &role)) != NULL)
		return e;
	return role != ROLE_NONE ? NULL : err_new(ERR_NOTFOUND, "unseen user");
}

/* Locks the project and the user, and reads the member; version 0 = the user is
 * none. */
static const struct err *
member_lock(struct work *w)
{
	struct req *rq = w->rq;
	const struct err *e;
	struct user user;

	w->member = (struct member){ .version = 0 };
	if ((e = deployment_hold_project(rq->db, rq->a, rq->id[0])) != NULL ||
	    (e = user_seen(rq)) != NULL ||
	    (e = user_lock(rq->db, rq->a, rq->id[1], &user)) != NULL)
		return e;
	e = member_find(rq->db, rq->a, rq->id[0], user.id, &w->member);
	if (e != NULL && e->code != ERR_NOTFOUND)
		return e;
	w->member.project_id = rq->id[0];
	w->member.user_id = user.id;
	return NULL;
}

static const struct err *
put_body(struct db *db, void *context)
{
	struct work *w = context;
	struct req *rq = w->rq;
	struct member old;
	const struct err *e;

	if ((e = member_lock(w)) != NULL)
		return e;
	old = w->member;
	if ((e = req_update(rq, &member_shape, old.version, &w->member)) !=
		NULL ||
	    audited_same(rq, &member_shape, &old, &w->member))
		return e;
	if ((e = member_put(db, &w->member)) != NULL ||
	    (e = audited_change(rq, AUDIT_OF_MEMBER, old.user_id,
		 old.project_id)) != NULL)
		return e;
	return member_find(db, rq->a, old.project_id, old.user_id, &w->member);
}

static const struct err *
api_member_put(struct req *rq)
{
	struct work w = { .rq = rq };
	const struct err *e;

	if ((e = req_transaction(rq, put_body, &w)) != NULL)
		return e;
	answer_item(rq, &member_shape, &w.member, w.member.version);
	return NULL;
}

static const struct err *
remove_body(struct db *db, void *context)
{
	struct work *w = context;
	const struct member *m = &w->member;
	const struct err *e;

	if ((e = member_lock(w)) != NULL)
		return e;
	if (m->version == 0)
		return err_new(ERR_NOTFOUND, "not a member");
	if ((e = req_match(w->rq, &member_shape, m->version)) != NULL ||
	    (e = member_remove(db, m)) != NULL)
		return e;
	return audited_change(w->rq, AUDIT_OF_MEMBER, m->user_id,
	    m->project_id);
}

static const struct err *
api_member_remove(struct req *rq)
{
	struct work w = { .rq = rq };

	return req_transaction(rq, remove_body, &w);
}

static const enum err_code unknown[] = { ERR_NOTFOUND, ERR__MAX };

static const struct route routes[] = {
	LIST("/api/projects/{id}/members", ROLE_VIEWER, route_page,
	    api_member_list, "listMembers",
	    "List the members of a project, ordered by username", member_shape),
	{ .method = METHOD_PUT,
	    .path = "/api/projects/{id}/members/{userId}",
	    .role = ROLE_MAINTAINER,
	    .flags = ROUTE_GUARDED,
	    .in = &member_shape,
	    .mode = JSON_UPDATE,
	    .handler = api_member_put,
	    .judge = api_member_judge,
	    .operation = "setMember",
	    .summary = "Add a member to a project, or change the role of one",
	    .out = &member_shape,
	    .status = 200 },
	REMOVE("/api/projects/{id}/members/{userId}", ROLE_MAINTAINER,
	    ROUTE_GUARDED, api_member_remove, "removeMember",
	    "Remove a member from a project", unknown),
	ROUTE_END,
};

const struct resource members_resource = {
	.tag = "members",
	.about = "Users with a role in one project.",
	.routes = routes,
};
