/* SPDX-License-Identifier: ISC */
#include "api/resources.h"
#include "api/rules.h"
#include "deploy/shared.h"
#include "store/variable.h"
#include "web/audited.h"

/* For one value, encrypted for each project. */
#define WORK_MAX ((size_t)64 << 20)

struct work {
	struct req *rq;
	struct variable variable;
};

static const struct err *
page_of_list(struct req *rq, struct page *p, struct list *out)
{
	return variable_page(rq->db, rq->a, p, out);
}

static const struct err *
api_variable_list(struct req *rq)
{
	return answer_pages(rq, &variable_shape, page_of_list);
}

static const struct err *
api_variable_show(struct req *rq)
{
	const struct err *e;
	struct variable v;

	if ((e = variable_by_id(rq->db, rq->a, rq->id[0], &v)) != NULL)
		return e;
	answer_item(rq, &variable_shape, &v, v.version);
	return NULL;
}

static const struct err *
api_variable_judge(struct req *rq, const void *item)
{
	struct arena *a = arena_open(WORK_MAX);
	struct deploy deploy = rules_context(rq, a);
	const struct err *e = shared_judge(&deploy, item);

	arena_close(a);
	return e;
}

static const struct err *
variable_write(struct req *rq, const struct variable *v, struct variable *out)
{
	struct arena *a = arena_open(WORK_MAX);
	struct deploy deploy = rules_context(rq, a);
	const struct err *e;
	int64_t id;

	e = shared_save(&deploy, v, &id);
	arena_close(a);
	if (e != NULL ||
	    (e = audited_change(rq, AUDIT_OF_VARIABLE, id, 0)) != NULL)
		return e;
	return variable_by_id(rq->db, rq->a, id, out);
}

static const struct err *
create_body(struct db *db, void *context)
{
	struct work *w = context;
	const struct err *e;

	(void)db;
	if ((e = req_judge(w->rq)) != NULL)
		return e;
	return variable_write(w->rq, w->rq->body, &w->variable);
}

static const struct err *
api_variable_create(struct req *rq)
{
	struct variable *sent = rq->body;
	struct work w = { .rq = rq };
	const struct err *e;

	if (sent->projects.s == NULL)
		sent->projects.s = "[]";
	sent->created_by = (struct maybe){ .n = rq->who.user_id, .set = true };
	if ((e = req_transaction(rq, create_body, &w)) != NULL)
		return e;
	answer_location(rq, "/api/variables/%lld", (long long)w.variable.id);
	answer_item(rq, &variable_shape, &w.variable, w.variable.version);
	return NULL;
}

static const struct err *
change_body(struct db *db, void *context)
{
	struct work *w = context;
	struct variable old;
	const struct err *e;

	e = variable_lock(db, w->rq->a, w->rq->id[0], &w->variable);
	if (e != NULL)
		return e;
	old = w->variable;
	if ((e = req_update(w->rq, &variable_shape, old.version,
		 &w->variable)) != NULL ||
	    audited_same(w->rq, &variable_shape, &old, &w->variable))
		return e;
	return variable_write(w->rq, &w->variable, &w->variable);
}

static const struct err *
api_variable_change(struct req *rq)
{
	struct work w = { .rq = rq };
	const struct err *e;

	if ((e = req_transaction(rq, change_body, &w)) != NULL)
		return e;
	answer_item(rq, &variable_shape, &w.variable, w.variable.version);
	return NULL;
}

static const struct err *
remove_body(struct db *db, void *context)
{
	struct work *w = context;
	const struct err *e;

	e = variable_lock(db, w->rq->a, w->rq->id[0], &w->variable);
	if (e == NULL)
		e = req_match(w->rq, &variable_shape, w->variable.version);
	if (e == NULL)
		e = variable_delete(db, w->variable.id);
	return e != NULL ?
	    e :
	    audited_change(w->rq, AUDIT_OF_VARIABLE, w->variable.id, 0);
}

static const struct err *
api_variable_remove(struct req *rq)
{
	struct work w = { .rq = rq };

	return req_transaction(rq, remove_body, &w);
}

static const struct route routes[] = {
	LIST("/api/variables", ROLE_ADMIN, route_page, api_variable_list,
	    "listVariables", "List shared variables, ordered by key",
	    variable_shape),
	CREATE("/api/variables", ROLE_ADMIN, api_variable_create,
	    api_variable_judge, "createVariable", "Create a shared variable",
	    variable_shape),
	SHOW("/api/variables/{id}", ROLE_ADMIN, api_variable_show,
	    "getVariable", "Get a shared variable", variable_shape),
	CHANGE("/api/variables/{id}", ROLE_ADMIN, api_variable_change,
	    api_variable_judge, "updateVariable", "Update a shared variable",
	    variable_shape),
	REMOVE("/api/variables/{id}", ROLE_ADMIN, ROUTE_GUARDED,
	    api_variable_remove, "deleteVariable", "Delete a shared variable",
	    NULL),
	ROUTE_END,
};

const struct resource variables_resource = {
	.tag = "variables",
	.about = "Variables that several projects share.",
	.routes = routes,
};
