/* SPDX-License-Identifier: ISC */
#include "web/scope.h"

#include <string.h>

#include "core/num.h"
#include "core/str.h"
#include "store/member.h"
#include "web/row.h"

#define UNKNOWN NUM_SAFE /* an id that no object has */

/* What an id belongs to. If a request names several, the first one counts: each
 * of the others must belong to the same project. */
static const struct kind {
	enum member_of of;
	const char *path;   /* begins the paths with its id; NULL = none */
	const char *param;  /* query parameter; NULL = none */
	const char *member; /* member of a body; NULL = none */
} kinds[] = {
	{ MEMBER_PROJECT, "/api/projects/{id}", "projectId", "project_id" },
	{ MEMBER_PIPELINE, "/api/pipelines/{id}", "pipelineId", "pipeline_id" },
	{ MEMBER_ENVIRONMENT, "/api/environments/{id}", "environmentId",
	    "environment_id" },
	{ MEMBER_STEP, "/api/steps/{id}", NULL, NULL },
	{ MEMBER_SCHEDULE, "/api/schedules/{id}", NULL, NULL },
	{ MEMBER_NOTIFIER, "/api/notifiers/{id}", NULL, NULL },
	{ MEMBER_DEPLOYMENT, "/api/deployments/{id}", NULL, NULL },
	{ MEMBER_USER, "/api/user/detail/{id}", NULL, NULL },
};
#define KINDS_END (kinds + sizeof(kinds) / sizeof(kinds[0]))

/* The kind of the first id in the path; NULL = it leads to no project. */
static const struct kind *
path_kind(const struct route *rt)
{
	const struct kind *k;
	size_t len;

	for (k = kinds; k < KINDS_END; k++) {
		len = strlen(k->path);
		if (strncmp(rt->path, k->path, len) == 0 &&
		    (rt->path[len] == '\0' || rt->path[len] == '/'))
			return k;
	}
	return NULL;
}

static const struct route_param *
param_find(const struct route *rt, const char *name)
{
	const struct route_param *p = rt->query;

	if (p == NULL || name == NULL)
		return NULL;
	while (p->name != NULL && strcmp(p->name, name) != 0)
		p++;
	return p->name != NULL ? p : NULL;
}

/* The entry of a body that creates something. */
static const struct field *
body_find(const struct route *rt, const char *member)
{
	if (rt->in == NULL || rt->mode != JSON_CREATE || member == NULL)
		return NULL;
	return field_find(rt->in->fields, member);
}

/* The first kind that the query or the body can name. */
static const struct kind *
named_kind(const struct route *rt)
{
	const struct kind *k;

	for (k = kinds; k < KINDS_END; k++)
		if (param_find(rt, k->param) != NULL ||
		    body_find(rt, k->member) != NULL)
			return k;
	return NULL;
}

bool
scope_is_of_project(const struct route *rt)
{
	const struct kind *k = path_kind(rt);

	if (rt->role == ROLE_NONE)
		return false;
	return k != NULL ? k->of != MEMBER_USER : named_kind(rt) != NULL;
}

static enum role
role_higher(enum role a, enum role b)
{
	return a > b ? a : b;
}

/* The role that a credential leaves. */
static enum role
role_capped(const struct req *rq, enum role role)
{
	const enum role cap = role_of(rq->who.cap);

	return cap == ROLE_NONE || role < cap ? role : cap;
}

/* Whether the caller can have a higher role as a member. For most callers the
 * answer is no, and no statement is needed. */
static bool
may_rise(const struct req *rq)
{
	return rq->role < role_capped(rq, ROLE_ADMIN);
}

const struct err *
scope_reach(struct req *rq, enum role *out)
{
	const struct err *e;
	enum role highest;

	*out = rq->role;
	if (!may_rise(rq))
		return NULL;
	e = member_highest(rq->db, rq->a, rq->who.user_id, &highest);
	if (e == NULL)
		*out = role_higher(rq->role, role_capped(rq, highest));
	return e;
}

const char *
scope_role(const struct req *rq, const char *member)
{
	return role_name(
	    role_higher(rq->role, role_capped(rq, role_of(member))));
}

static const struct err *
role_require(struct req *rq)
{
	rq->is_scoped = true;
	if (rq->role >= rq->route->role)
		return NULL;
	return err_public(ERR_FORBIDDEN,
	    "This requires the role %s; yours is %s.",
	    role_name(rq->route->role), role_name(rq->role));
}

/* Hides the object from a guest. An earlier response to the same idempotency key
 * would show it. */
static const struct err *
object_hide(struct req *rq, int64_t *id)
{
	*id = UNKNOWN;
	rq->in[IN_IDEMPOTENCY_KEY] = NULL;
	rq->is_scoped = true;
	return NULL;
}

/* Sets and checks the role for the object of that id. */
static const struct err *
object_enter(struct req *rq, enum member_of of, int64_t *id)
{
	const bool is_guest = rq->role == ROLE_GUEST;
	const struct err *e;
	enum role role;

	if (!is_guest && !may_rise(rq))
		return role_require(rq);
	if ((e = member_role(rq->db, rq->a, of, *id, rq->who.user_id, &role)) !=
	    NULL)
		return e;
	if (is_guest && role == ROLE_NONE)
		return object_hide(rq, id);
	rq->role = role_higher(rq->role, role_capped(rq, role));
	return role_require(rq);
}

const struct err *
scope_path(struct req *rq)
{
	const struct kind *k = path_kind(rq->route);
	const struct err *e;
	enum role reach = rq->role;

	rq->member = rq->role == ROLE_GUEST ? rq->who.user_id : 0;
	if (k != NULL)
		return object_enter(rq, k->of, &rq->id[0]);
	if (named_kind(rq->route) == NULL)
		return role_require(rq);
	if (rq->role == ROLE_GUEST)
		return NULL; /* decided when the project is known */
	if (rq->role < rq->route->role && (e = scope_reach(rq, &reach)) != NULL)
		return e;
	return reach >= rq->route->role ? NULL : role_require(rq);
}

const struct err *
scope_query(struct req *rq)
{
	const struct route_param *p;
	const struct kind *k;
	size_t i;

	for (k = kinds; !rq->is_scoped && k < KINDS_END; k++) {
		if ((p = param_find(rq->route, k->param)) == NULL)
			continue;
		i = (size_t)(p - rq->route->query);
		if (rq->query[i].set)
			return object_enter(rq, k->of, &rq->query[i].n);
	}
	return NULL;
}

const struct err *
scope_body(struct req *rq)
{
	const struct kind *k = named_kind(rq->route);
	const struct field *f;
	int64_t *id;

	if (rq->is_scoped || k == NULL ||
	    (f = body_find(rq->route, k->member)) == NULL)
		return NULL;
	id = f->type == F_MAYBE ? &((struct maybe *)field_at(rq->body, f))->n :
				  field_at(rq->body, f);
	if (*id != 0)
		return object_enter(rq, k->of, id);
	/* a body without a valid id is rejected in any case */
	return rq->faults.n > 0 ? NULL : role_require(rq);
}

const struct err *
scope_rest(struct req *rq)
{
	return rq->is_scoped || rq->route->role == ROLE_NONE ? NULL :
							       role_require(rq);
}
