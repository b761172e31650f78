/* SPDX-License-Identifier: ISC */
#include <string.h>

#include "api/resources.h"
#include "crypto/public_key.h"
#include "crypto/ssh_key.h"
#include "json/json.h"
#include "queue/deployment.h"
#include "store/deploy_key.h"
#include "web/audited.h"

#define CHANGES_MAX 1024

struct work {
	struct req *rq;
	struct deploy_key key;
};

/* Locks the project and reads its key; created_at 0 = there is none. */
static const struct err *
key_lock(struct req *rq, struct deploy_key *out)
{
	const struct err *e;

	*out = (struct deploy_key){ .sealed = NULL };
	if ((e = deployment_hold_project(rq->db, rq->a, rq->id[0])) != NULL)
		return e;
	e = deploy_key_find(rq->db, rq->a, rq->id[0], out);
	return e != NULL && e->code == ERR_NOTFOUND ? NULL : e;
}

/* Adds an entry with both fingerprints; NULL = no key. */
static const struct err *
key_audit(struct req *rq, const char *from, const char *to)
{
	struct audit_change change = { "fingerprint", from, to };
	const struct list changes = { &change, 1 };
	const struct err *e;
	struct buf text;

	buf_init(&text, CHANGES_MAX);
	json_write_list(&text, &audit_change_shape, &changes, 0);
	if ((e = buf_check(&text)) == NULL) {
		rq->audited.changes = arena_strndup(rq->a, text.data, text.len);
		e = audited_change(rq, AUDIT_OF_PROJECT, rq->id[0], rq->id[0]);
	}
	buf_release(&text);
	return e;
}

static const struct err *
api_deploy_key_show(struct req *rq)
{
	struct deploy_key key;
	const struct err *e;

	e = deploy_key_find(rq->db, rq->a, rq->id[0], &key);
	if (e == NULL)
		answer_item(rq, &deploy_key_shape, &key, key.created_at.ms);
	return e;
}

static const struct err *
put_body(struct db *db, void *context)
{
	struct work *w = context;
	struct req *rq = w->rq;
	struct deploy_key old;
	const struct err *e;

	if ((e = key_lock(rq, &old)) != NULL ||
	    (e = req_match(rq, &deploy_key_shape, old.created_at.ms)) != NULL ||
	    (e = deploy_key_put(db, &w->key)) != NULL ||
	    (e = key_audit(rq, old.fingerprint, w->key.fingerprint)) != NULL)
		return e;
	return deploy_key_find(db, rq->a, rq->id[0], &w->key);
}

/* Creates a key; nothing outside keeps its private half in the clear. */
static const struct err *
key_make(struct req *rq, struct deploy_key *out)
{
	const long long id = (long long)rq->id[0];
	const char *base64, *end;
	struct ssh_key key;
	const struct err *e;

	ssh_key_make(rq->a, arena_printf(rq->a, "slipway-project-%lld", id),
	    &key);
	*out = (struct deploy_key){ .project_id = rq->id[0],
		.public_key = key.public_half,
		.created_by = { rq->who.user_id, true } };
	e = public_key_seal(rq->public_key, rq->a,
	    arena_printf(rq->a, DEPLOY_KEY_PURPOSE, id), key.private_half,
	    &out->sealed);
	ssh_key_clear(&key);
	base64 = strchr(key.public_half, ' ') + 1;
	end = strchr(base64, ' ');
	out->fingerprint = ssh_key_fingerprint(rq->a, base64,
	    (size_t)(end - base64));
	return e;
}

static const struct err *
api_deploy_key_create(struct req *rq)
{
	struct work w = { .rq = rq };
	const struct err *e;

	if (rq->public_key == NULL)
		return err_public(ERR_CONFIG,
		    "The service has no key to encrypt the deploy key. An "
		    "administrator must run \"slipway-admin key\" and reload "
		    "the service.");
	if ((e = key_make(rq, &w.key)) != NULL ||
	    (e = req_transaction(rq, put_body, &w)) != NULL)
		return e;
	answer_item(rq, &deploy_key_shape, &w.key, w.key.created_at.ms);
	return NULL;
}

static const struct err *
remove_body(struct db *db, void *context)
{
	struct work *w = context;
	struct req *rq = w->rq;
	const struct err *e;

	if ((e = key_lock(rq, &w->key)) != NULL)
		return e;
	if (w->key.sealed == NULL)
		return err_new(ERR_NOTFOUND, "no deploy key");
	e = req_match(rq, &deploy_key_shape, w->key.created_at.ms);
	if (e != NULL || (e = deploy_key_remove(db, rq->id[0])) != NULL)
		return e;
	return key_audit(rq, w->key.fingerprint, NULL);
}

static const struct err *
api_deploy_key_remove(struct req *rq)
{
	struct work w = { .rq = rq };

	return req_transaction(rq, remove_body, &w);
}

static const enum err_code none[] = { ERR_NOTFOUND, ERR__MAX };

static const struct route routes[] = {
	SHOW("/api/projects/{id}/deploy-key", ROLE_MAINTAINER,
	    api_deploy_key_show, "getDeployKey",
	    "Get the public half of a project's deploy key", deploy_key_shape),
	{ .method = METHOD_PUT,
	    .path = "/api/projects/{id}/deploy-key",
	    .role = ROLE_MAINTAINER,
	    .flags = ROUTE_GUARDED,
	    .handler = api_deploy_key_create,
	    .operation = "createDeployKey",
	    .summary = "Create a project's deploy key, or replace it by a new "
		       "one",
	    .doc = "Runners use the key, and no other, to read the project's "
		   "repository over SSH. Only they can decrypt the private "
		   "half, which is never shown.",
	    .out = &deploy_key_shape,
	    .status = 200 },
	REMOVE("/api/projects/{id}/deploy-key", ROLE_MAINTAINER, ROUTE_GUARDED,
	    api_deploy_key_remove, "deleteDeployKey",
	    "Delete a project's deploy key", none),
	ROUTE_END,
};

const struct resource deploy_keys_resource = {
	.tag = "projects",
	.routes = routes,
};
