/* SPDX-License-Identifier: ISC */
#include "api/handlers.h"
#include "store/user.h"

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

const struct err *
api_user_list(struct req *rq)
{
	return answer_pages(rq, &user_shape, page_of_all);
}

const struct err *
api_user_search(struct req *rq)
{
	return answer_pages(rq, &user_shape, page_of_found);
}

const struct err *
api_user_show(struct req *rq)
{
	const struct err *e;
	struct user u;

	if ((e = user_by_id(rq->db, rq->a, rq->id[0], &u)) != NULL)
		return e;
	answer_item(rq, &user_shape, &u, u.version);
	return NULL;
}

const struct err *
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
	return user_by_id(db, rq->a, id, &w->u);
}

const struct err *
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
	    json_unchanged(&user_shape, &old, &w->u))
		return e;
	if ((e = user_update(db, &w->u)) != NULL)
		return req_taken(rq, e, &w->u);
	return user_by_id(db, rq->a, rq->id[0], &w->u);
}

const struct err *
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
	return user_delete(db, w->u.id);
}

const struct err *
api_user_remove(struct req *rq)
{
	struct work w = { .rq = rq };

	return req_transaction(rq, remove_body, &w);
}
