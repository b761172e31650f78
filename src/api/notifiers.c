/* SPDX-License-Identifier: ISC */
#include "api/resources.h"
#include "api/rules.h"
#include "core/str.h"
#include "crypto/webhook.h"
#include "deploy/deploy.h"
#include "deploy/notified.h"
#include "queue/notice.h"
#include "store/notifier.h"
#include "web/audited.h"

struct work {
	struct req *rq;
	struct notifier notifier;
};

static const struct err *
page_of_list(struct req *rq, struct page *p, struct list *out)
{
	return notifier_page(rq->db, rq->a, req_int(rq, "projectId"), p, out);
}

static const struct err *
api_notifier_list(struct req *rq)
{
	return answer_pages(rq, &notifier_shape, page_of_list);
}

static void
answer_notifier(struct req *rq, const struct notifier *n)
{
	answer_item(rq, &notifier_shape, n, n->version);
}

static const struct err *
api_notifier_show(struct req *rq)
{
	const struct err *e;
	struct notifier n;

	if ((e = notifier_by_id(rq->db, rq->a, rq->id[0], &n)) == NULL)
		answer_notifier(rq, &n);
	return e;
}

static const struct err *
api_notifier_judge(struct req *rq, const void *item)
{
	struct arena *a = arena_open(DEPLOY_WORK);
	struct deploy deploy = rules_context(rq, a);
	const struct err *e = notified_judge(&deploy, item);

	arena_close(a);
	return e;
}

/* Creates and stores a secret; `out` shows it. */
static const struct err *
secret_renew(struct req *rq, struct notifier *out)
{
	const char *purpose = arena_printf(rq->a, NOTIFIER_PURPOSE,
	    (long long)out->id);
	const struct err *e;
	struct blob sealed;

	if (rq->keyring == NULL)
		return err_public(ERR_CONFIG,
		    "The service has no key to encrypt the secret. An "
		    "administrator must run \"slipway-admin key\" and reload "
		    "the service.");
	out->secret = webhook_secret(rq->a);
	e = keyring_seal(rq->keyring, rq->a, purpose, out->secret, &sealed);
	if (e != NULL)
		return e;
	return notifier_secret_put(rq->db, out->id, sealed);
}

static const struct err *
notifier_audit(const struct work *w)
{
	return audited_change(w->rq, AUDIT_OF_NOTIFIER, w->notifier.id,
	    w->notifier.project_id.n);
}

static const struct err *
create_body(struct db *db, void *context)
{
	struct work *w = context;
	struct req *rq = w->rq;
	const struct notifier *sent = rq->body;
	const struct err *e = NULL;
	int64_t id;

	if (sent->project_id.set)
		e = deployment_hold_project(db, rq->a, sent->project_id.n);
	if (e != NULL && e->code != ERR_NOTFOUND)
		return e;
	if ((e = req_judge(rq)) != NULL ||
	    (e = notifier_insert(db, sent, &id)) != NULL ||
	    (e = notifier_by_id(db, rq->a, id, &w->notifier)) != NULL ||
	    (e = notifier_audit(w)) != NULL)
		return e;
	return str_eq(sent->kind, NOTIFIER_WEBHOOK) ?
	    secret_renew(rq, &w->notifier) :
	    NULL;
}

static const struct err *
api_notifier_create(struct req *rq)
{
	struct notifier *sent = rq->body;
	struct work w = { .rq = rq };
	const struct err *e;

	sent->created_by = (struct maybe){ .n = rq->who.user_id, .set = true };
	if ((e = req_transaction(rq, create_body, &w)) != NULL)
		return e;
	answer_location(rq, "/api/notifiers/%lld", (long long)w.notifier.id);
	answer_notifier(rq, &w.notifier);
	return NULL;
}

static const struct err *
change_body(struct db *db, void *context)
{
	struct work *w = context;
	struct req *rq = w->rq;
	struct notifier old;
	const struct err *e;

	e = notifier_lock(db, rq->a, rq->id[0], &w->notifier);
	if (e != NULL)
		return e;
	old = w->notifier;
	if ((e = req_update(rq, &notifier_shape, old.version, &w->notifier)) !=
		NULL ||
	    audited_same(rq, &notifier_shape, &old, &w->notifier))
		return e;
	if ((e = notifier_update(db, &w->notifier)) != NULL ||
	    (e = notifier_audit(w)) != NULL)
		return e;
	return notifier_by_id(db, rq->a, old.id, &w->notifier);
}

static const struct err *
api_notifier_change(struct req *rq)
{
	struct work w = { .rq = rq };
	const struct err *e;

	if ((e = req_transaction(rq, change_body, &w)) == NULL)
		answer_notifier(rq, &w.notifier);
	return e;
}

static const struct err *
remove_body(struct db *db, void *context)
{
	struct work *w = context;
	const struct err *e;

	e = notifier_lock(db, w->rq->a, w->rq->id[0], &w->notifier);
	if (e == NULL)
		e = req_match(w->rq, &notifier_shape, w->notifier.version);
	if (e != NULL || (e = notifier_delete(db, w->notifier.id)) != NULL)
		return e;
	return notifier_audit(w);
}

static const struct err *
api_notifier_remove(struct req *rq)
{
	struct work w = { .rq = rq };

	return req_transaction(rq, remove_body, &w);
}

static const struct err *
secret_body(struct db *db, void *context)
{
	struct work *w = context;
	const struct err *e;

	e = notifier_lock(db, w->rq->a, w->rq->id[0], &w->notifier);
	if (e != NULL)
		return e;
	if (!str_eq(w->notifier.kind, NOTIFIER_WEBHOOK))
		return err_public(ERR_CONFLICT,
		    "Only a notifier of the kind webhook has a secret.");
	if ((e = secret_renew(w->rq, &w->notifier)) != NULL)
		return e;
	return notifier_audit(w);
}

static const struct err *
api_notifier_secret(struct req *rq)
{
	struct work w = { .rq = rq };
	const struct err *e;

	if ((e = req_transaction(rq, secret_body, &w)) == NULL)
		answer_notifier(rq, &w.notifier);
	return e;
}

static const struct err *
test_body(struct db *db, void *context)
{
	struct work *w = context;
	const struct err *e;

	e = notifier_lock(db, w->rq->a, w->rq->id[0], &w->notifier);
	if (e != NULL)
		return e;
	if (!w->notifier.active)
		return err_public(ERR_CONFLICT,
		    "The notifier is not active. Set active to true first.");
	e = notice_want_test(db, w->notifier.id, w->rq->who.user_id);
	return e != NULL ? e : notifier_audit(w);
}

/* The runner sends the message. */
static const struct err *
api_notifier_test(struct req *rq)
{
	const struct deploy deploy = rules_context(rq, rq->a);
	struct work w = { .rq = rq };
	const struct err *e;

	if ((e = req_transaction(rq, test_body, &w)) != NULL)
		return e;
	deploy_wake(&deploy);
	answer_notifier(rq, &w.notifier);
	return NULL;
}

static const struct route_param notifier_params[] = {
	ROUTE_PAGE,
	{ .name = "projectId",
	    .type = PARAM_INT,
	    .min = ID_MIN,
	    .doc = "Only notifiers of this project." },
	PARAM_END,
};

static const struct route routes[] = {
	LIST("/api/notifiers", ROLE_MAINTAINER, notifier_params,
	    api_notifier_list, "listNotifiers", "List notifiers, ordered by id",
	    notifier_shape),
	CREATE("/api/notifiers", ROLE_MAINTAINER, api_notifier_create,
	    api_notifier_judge, "createNotifier",
	    "Create a notifier; for a webhook, the response shows the secret",
	    notifier_shape),
	SHOW("/api/notifiers/{id}", ROLE_MAINTAINER, api_notifier_show,
	    "getNotifier", "Get a notifier", notifier_shape),
	CHANGE("/api/notifiers/{id}", ROLE_MAINTAINER, api_notifier_change,
	    api_notifier_judge, "updateNotifier", "Update a notifier",
	    notifier_shape),
	REMOVE("/api/notifiers/{id}", ROLE_MAINTAINER, ROUTE_GUARDED,
	    api_notifier_remove, "deleteNotifier",
	    "Delete a notifier and its undelivered messages", NULL),
	{ .method = METHOD_PUT,
	    .path = "/api/notifiers/{id}/secret",
	    .role = ROLE_MAINTAINER,
	    .handler = api_notifier_secret,
	    .operation = "renewNotifierSecret",
	    .summary = "Create a new secret for a webhook; the response is the "
		       "only one to show it",
	    .out = &notifier_shape,
	    .status = 200,
	    .errors = route_conflict },
	{ .method = METHOD_POST,
	    .path = "/api/notifiers/{id}/test",
	    .role = ROLE_MAINTAINER,
	    .handler = api_notifier_test,
	    .operation = "testNotifier",
	    .summary = "Send a test message; lastDeliveredAt or lastError "
		       "shows the result",
	    .out = &notifier_shape,
	    .status = 200,
	    .errors = route_conflict },
	ROUTE_END,
};

const struct resource notifiers_resource = {
	.tag = "notifiers",
	.about = "Receivers of messages about deployments and locks.",
	.routes = routes,
};
