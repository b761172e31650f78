/* SPDX-License-Identifier: ISC */
#include <time.h>

#include "api/resources.h"
#include "api/rules.h"
#include "deploy/deploy.h"
#include "queue/deployment.h"
#include "queue/notice.h"
#include "store/environment.h"
#include "store/lock.h"
#include "web/audited.h"

/* What a transaction works on. A lock has no version of its own: each change
 * sets `since`. */
struct work {
	struct req *rq;
	/* Locks the row of the object that the path names, and fills in its
	 * place. */
	const struct err *(*find)(struct req *, struct deploy_lock *place);
	struct deploy_lock lock;
};

static const struct err *
lock_audit(struct req *rq, const struct deploy_lock *place)
{
	const struct audit_object_ref object = lock_object(place);

	return audited_object(rq, &object);
}

static const struct err *
service_find(struct req *rq, struct deploy_lock *place)
{
	*place = (struct deploy_lock){ .project_id = 0 };
	return lock_queue_up(rq->db);
}

static const struct err *
project_find(struct req *rq, struct deploy_lock *place)
{
	*place = (struct deploy_lock){ .project_id = rq->id[0] };
	return deployment_hold_project(rq->db, rq->a, rq->id[0]);
}

static const struct err *
environment_find(struct req *rq, struct deploy_lock *place)
{
	struct environment env = { .id = 0 };
	const struct err *e;

	e = environment_hold_project(rq->db, rq->a, rq->id[0]);
	if (e == NULL)
		e = environment_by_id(rq->db, rq->a, rq->id[0], &env);
	*place = (struct deploy_lock){ .project_id = env.project_id,
		.environment_id = env.id };
	return e;
}

static const struct err *
api_lock_judge(struct req *rq, const void *item)
{
	const struct deploy_lock *lock = item;

	if (lock->reason == NULL && !faults_has(&rq->faults, "/reason"))
		faults_add(&rq->faults, "/reason", "is missing");
	if (lock->until.ms != 0 && lock->until.ms / 1000 <= time(NULL))
		faults_add(&rq->faults, "/until", "must be in the future");
	return NULL;
}

static const struct err *
put_body(struct db *db, void *context)
{
	struct work *w = context;
	struct deploy_lock place, old;
	const struct err *e;

	if ((e = w->find(w->rq, &place)) != NULL)
		return e;
	w->lock = (struct deploy_lock){ .reason = NULL };
	e = lock_at(db, w->rq->a, place.project_id, place.environment_id,
	    &w->lock);
	if (e != NULL && e->code != ERR_NOTFOUND)
		return e;
	w->lock.project_id = place.project_id;
	w->lock.environment_id = place.environment_id;
	old = w->lock;
	if ((e = req_update(w->rq, &lock_shape, old.since.ms, &w->lock)) !=
		NULL ||
	    audited_same(w->rq, &lock_shape, &old, &w->lock))
		return e;
	w->lock.locked_by = (struct maybe){ w->rq->who.user_id, true };
	if ((e = lock_put(db, &w->lock)) != NULL ||
	    (e = notice_want_lock(db, &w->lock)) != NULL ||
	    (e = lock_audit(w->rq, &place)) != NULL)
		return e;
	return lock_at(db, w->rq->a, place.project_id, place.environment_id,
	    &w->lock);
}

/* The runner sends the messages of notifiers about it. */
static const struct err *
lock_set(struct work w)
{
	const struct deploy deploy = rules_context(w.rq, w.rq->a);
	const struct err *e;

	if ((e = req_transaction(w.rq, put_body, &w)) != NULL)
		return e;
	deploy_wake(&deploy);
	answer_item(w.rq, &lock_shape, &w.lock, w.lock.since.ms);
	return NULL;
}

static const struct err *
remove_body(struct db *db, void *context)
{
	struct work *w = context;
	struct deploy_lock place, lock;
	const struct err *e;

	if ((e = w->find(w->rq, &place)) != NULL)
		return e;
	e = lock_at(db, w->rq->a, place.project_id, place.environment_id,
	    &lock);
	if (e != NULL ||
	    (e = req_match(w->rq, &lock_shape, lock.since.ms)) != NULL ||
	    (e = lock_remove(db, place.project_id, place.environment_id)) !=
		NULL)
		return e;
	return lock_audit(w->rq, &place);
}

/* Deployments that waited for the lock can start. */
static const struct err *
lock_drop(struct work w)
{
	const struct deploy deploy = rules_context(w.rq, w.rq->a);
	const struct err *e;

	if ((e = req_transaction(w.rq, remove_body, &w)) == NULL)
		deploy_wake(&deploy);
	return e;
}

static const struct err *
api_lock_show(struct req *rq)
{
	struct deploy_lock lock;
	const struct err *e;

	if ((e = lock_at(rq->db, rq->a, 0, 0, &lock)) != NULL)
		return e;
	answer_item(rq, &lock_shape, &lock, lock.since.ms);
	return NULL;
}

#define HANDLERS(what)                                                         \
	static const struct err *api_##what##_lock(struct req *rq)             \
	{                                                                      \
		return lock_set(                                               \
		    (struct work){ .rq = rq, .find = what##_find });           \
	}                                                                      \
	static const struct err *api_##what##_unlock(struct req *rq)           \
	{                                                                      \
		return lock_drop(                                              \
		    (struct work){ .rq = rq, .find = what##_find });           \
	}
HANDLERS(project)
HANDLERS(environment)
HANDLERS(service)

/* clang-format off */
#define SET(p, r, h, op, sum)						\
	{ .method = METHOD_PUT, .path = (p), .role = (r),		\
	    .flags = ROUTE_GUARDED, .in = &lock_shape, .mode = JSON_UPDATE, .handler = (h),	\
	    .judge = api_lock_judge, .operation = (op), .summary = (sum), \
	    .out = &lock_shape, .status = 200 }
/* clang-format on */

static const enum err_code not_set[] = { ERR_NOTFOUND, ERR__MAX };

static const struct route routes[] = {
	{ .method = METHOD_GET,
	    .path = "/api/lock",
	    .role = ROLE_GUEST,
	    .handler = api_lock_show,
	    .operation = "getLock",
	    .summary = "Get the lock of the service",
	    .out = &lock_shape,
	    .status = 200,
	    .errors = not_set },
	SET("/api/lock", ROLE_ADMIN, api_service_lock, "lockService",
	    "Lock the whole service"),
	REMOVE("/api/lock", ROLE_ADMIN, ROUTE_GUARDED, api_service_unlock,
	    "unlockService", "Remove the lock of the service", not_set),
	SET("/api/projects/{id}/lock", ROLE_MAINTAINER, api_project_lock,
	    "lockProject", "Lock a project"),
	REMOVE("/api/projects/{id}/lock", ROLE_MAINTAINER, ROUTE_GUARDED,
	    api_project_unlock, "unlockProject", "Remove the lock of a project",
	    NULL),
	SET("/api/environments/{id}/lock", ROLE_MAINTAINER,
	    api_environment_lock, "lockEnvironment", "Lock an environment"),
	REMOVE("/api/environments/{id}/lock", ROLE_MAINTAINER, ROUTE_GUARDED,
	    api_environment_unlock, "unlockEnvironment",
	    "Remove the lock of an environment", NULL),
	ROUTE_END,
};

const struct resource locks_resource = {
	.tag = "locks",
	.about = "Locks that keep new deployments from starting.",
	.routes = routes,
};
