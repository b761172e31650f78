/* SPDX-License-Identifier: ISC */
/* Push events from Git servers. */
#include <string.h>
#include <strings.h>

#include "api/resources.h"
#include "api/rules.h"
#include "api/signature.h"
#include "core/address.h"
#include "core/log.h"
#include "core/num.h"
#include "core/str.h"
#include "crypto/webhook.h"
#include "deploy/deploy.h"
#include "deploy/pushed.h"
#include "deploy/repository.h"
#include "store/gitrepo.h"
#include "store/hook.h"
#include "store/project.h"
#include "web/audited.h"
#include "web/scoreboard.h"

#define ANSWER_MAX ((size_t)2 << 20)
#define IGNORED "X-Slipway-Ignored" /* why an event starts nothing */

struct hook_access { /* settings for a webhook at the Git server */
	const char *secret;
	const char *url;
};

#define K(m, fl, ...)                                                          \
	FIELD(struct hook_access, m, FIELD_OUT | (fl), __VA_ARGS__)

static const struct field hook_access_fields[] = {
	K(secret, 0,
	    .doc = "Secret with which the Git server signs push "
		   "events."),
	K(url, FIELD_NULL,
	    .doc = "URL for push events; null if the service does not know its "
		   "own URL (api.url)."),
	FIELD_END,
};
static const struct shape hook_access_shape = {
	.name = "HookAccess",
	.fields = hook_access_fields,
	.size = sizeof(struct hook_access),
	.doc = "Settings for the webhook at the Git server.",
};

#define D(m, ...) FIELD(struct deployment, m, FIELD_OUT | __VA_ARGS__)
static const struct field hook_deployment_fields[] = {
	D(id, 0, .doc = "Id of the deployment."),
	D(project_id, 0, .doc = "Project to deploy."),
	D(pipeline_id, 0, .doc = "Pipeline of the trigger."),
	D(branch, FIELD_NULL, .doc = "Pushed branch; null if it is a tag."),
	D(tag, FIELD_NULL, .doc = "Pushed tag; null if it is a branch."),
	D(commit_hash, FIELD_NULL,
	    .doc = "Pushed commit; null if the event of a tag does not name "
		   "it."),
	D(commit_message, FIELD_NULL, .doc = "Message of the commit."),
	D(status, 0, .values = state_deployments, .named = "DeploymentStatus",
	    .doc = "Status of the deployment."),
	D(trigger, 0, .values = deployment_triggers,
	    .named = "DeploymentTrigger", .doc = "Always webhook."),
	D(created_at, 0, .doc = "Time of creation."),
	FIELD_END,
};
static const struct shape hook_deployment_shape = {
	.name = "HookDeployment",
	.fields = hook_deployment_fields,
	.size = sizeof(struct deployment),
	.doc = "A deployment that a push started.",
};

/* The URL for push events; NULL if no setting contains the service's
 * address. */
static const char *
hook_url(const struct req *rq, int64_t project_id)
{
	const char *base = rq->settings->api.url;
	struct address ad;
	size_t len;

	if (base == NULL || *base == '\0') {
		base = rq->settings->gitserver.redirect_uri;
		if (base == NULL || !address_read(base, &ad) ||
		    !address_is_web(&ad))
			return NULL;
		base = address_origin(rq->a, &ad);
	}
	for (len = strlen(base); len > 0 && base[len - 1] == '/';)
		len--;
	return arena_printf(rq->a, "%.*s/api/hooks/%lld", (int)len, base,
	    (long long)project_id);
}

struct renewal {
	struct req *rq;
	struct hook_secret secret;
};

static const struct err *
secret_body(struct db *db, void *context)
{
	const struct renewal *r = context;
	const int64_t id = r->secret.project_id;
	const struct err *e;

	if ((e = project_share(db, r->rq->a, id)) != NULL ||
	    (e = hook_secret_put(db, &r->secret)) != NULL)
		return e;
	return audited_change(r->rq, AUDIT_OF_PROJECT, id, id);
}

static const struct err *
api_hook_secret(struct req *rq)
{
	struct renewal one = { .rq = rq,
		.secret = { .project_id = rq->id[0],
		    .made_by = { rq->who.user_id, true } } };
	struct hook_access shown = { .url = hook_url(rq, rq->id[0]) };
	const struct err *e;

	if (rq->keyring == NULL)
		return err_public(ERR_CONFIG,
		    "The service has no key to encrypt the secret. An "
		    "administrator must run \"slipway-admin key\" and reload "
		    "the service.");
	shown.secret = webhook_secret(rq->a);
	e = keyring_seal(rq->keyring, rq->a,
	    arena_printf(rq->a, HOOK_PURPOSE, (long long)rq->id[0]),
	    shown.secret, &one.secret.secret);
	if (e != NULL)
		return e;
	if ((e = req_transaction(rq, secret_body, &one)) != NULL)
		return e;
	answer_item(rq, &hook_access_shape, &shown, 0);
	return NULL;
}

/* An accepted push. Its transaction may run again. */
struct take {
	struct req *rq;
	struct arena *a; /* cleared for each deployment */
	struct deploy deploy;
	const struct hook_envelope *env;
	const struct hook_push *push;
	const char *delivery;      /* hash of the delivery's identity */
	bool again;                /* the delivery was accepted before */
	struct hook_secret secret; /* who created it */
	struct pushed_result result;
};

/* The identity of a delivery, so that it is accepted only once. A delivery id
 * counts only if the signature covers it; where an HMAC covers the body alone,
 * the body is the identity. The event's server is not signed either, so it is
 * not part of the identity. */
static const char *
delivery_hash(const struct req *rq, const struct hook_envelope *env)
{
	const char *id = env->signing == HOOK_STANDARD ? env->signed_id :
	    env->signing == HOOK_PLAIN                 ? env->delivery :
							 NULL;
	char hash[CRYPTO_HASH_HEX];
	const char *what;

	if (id == NULL) {
		crypto_sha256(rq->text, rq->len, hash);
		id = hash;
	}
	what = arena_printf(rq->a, "%d %s", (int)env->signing, id);
	crypto_sha256(what, strlen(what), hash);
	return arena_strdup(rq->a, hash);
}

/* Whether the event comes from the configured Git server and the project's
 * repository is there; sets `out` to its path. */
static bool
is_ours(const struct take *t, const struct project *p, struct forge_repo *out)
{
	const struct req *rq = t->rq;

	return rq->access->forge != NULL && t->push->repo_id != NULL &&
	    str_eq(rq->settings->gitserver.type, t->env->kind) &&
	    forge_repo_of(rq->access->forge, t->a, p->repository, out) == NULL;
}

/* Checks that the push is to the project's repository: by the Git server's id,
 * which a rename does not change, else by its path.  Who knows the secret can
 * sign any event, so the id itself is never taken from one: that would choose the
 * repository that is read. */
static const struct err *
repository_check(struct take *t, const struct project *p)
{
	const struct hook_push *push = t->push;
	struct forge_repo ours;
	struct git_repo known, fresh;
	const struct err *e;
	bool same;

	if (is_ours(t, p, &ours)) {
		fresh = (struct git_repo){ .project_id = p->id,
			.server = forge_server(t->rq->access->forge),
			.repository = p->repository,
			.repo_id = push->repo_id,
			.path = push->repo_path };
		e = gitrepo_find(t->rq->db, t->a, p->id, fresh.server,
		    p->repository, &known);
		if (e != NULL && e->code != ERR_NOTFOUND)
			return e;
		same = e == NULL ? str_eq(known.repo_id, push->repo_id) :
				   strcasecmp(ours.path, push->repo_path) == 0;
		if (e == NULL && same &&
		    (e = gitrepo_put(t->rq->db, &fresh)) != NULL)
			return e;
	} else {
		same = repository_ends(p->repository, push->repo_path);
	}
	if (same)
		return NULL;
	return err_public(ERR_INVALID,
	    "The push is to the repository %s, which is not the project's "
	    "repository. Correct the project's repository, or remove the "
	    "webhook from that one.",
	    str_clip(t->rq->a, push->repo_path, 200));
}

static const struct err *
deployment_audit(void *context, const struct deployment *d)
{
	return audited_change(context, AUDIT_OF_DEPLOYMENT, d->id,
	    d->project_id);
}

/* Creates the deployments, unless a runner did; an error if all matching triggers
 * are rejected. */
static const struct err *
push_fire(struct take *t, const struct project *p)
{
	const struct hook_push *push = t->push;
	const struct pushed pushed = { .branch = push->branch,
		.tag = push->tag,
		.commit_hash = push->commit_hash,
		.commit_message = push->commit_message,
		.before = push->before,
		.files = push->files,
		.has_files = push->has_files,
		.is_event = true,
		.reader = t->secret.made_by,
		.deployer = t->secret.deployer,
		.audit = deployment_audit,
		.context = t->rq };
	const struct err *e;

	e = pushed_fire(&t->deploy, t->rq->a, p, &pushed, &t->result);
	if (e == NULL)
		e = pushed_note(&t->deploy, p->id, &pushed, &t->result);
	faults_again(&t->rq->faults, t->rq->a);
	if (e != NULL || t->result.matching == t->result.caught ||
	    t->result.made > 0 || t->result.skip != NULL)
		return e;
	return err_public(ERR_INVALID,
	    "Triggers of the project match, but all were rejected: %s",
	    str_clip(t->rq->a, t->result.rejected.data, 400));
}

static const struct err *
take_find(struct take *t)
{
	struct hook_delivery had;
	const struct err *e;

	e = hook_delivery_find(t->rq->db, t->a, t->rq->id[0], t->delivery,
	    &had);
	if (e != NULL)
		return e;
	buf_clear(&t->result.ids);
	buf_puts(&t->result.ids, had.deployments.s);
	t->again = true;
	return NULL;
}

static const struct err *
take_body(struct db *db, void *context)
{
	struct take *t = context;
	struct hook_delivery one = { .project_id = t->rq->id[0],
		.delivery_hash = t->delivery };
	const struct err *e;
	struct project p;

	arena_clear(t->a);
	t->result.made = 0;
	t->again = false;
	audited_nothing(t->rq); /* unless a trigger creates a deployment */
	if ((e = take_find(t)) == NULL || e->code != ERR_NOTFOUND)
		return e;
	e = project_lock(db, t->rq->a, one.project_id, &p);
	/* another user may have changed the secret meanwhile */
	if (e == NULL)
		e = signature_check(t->rq, t->env, one.project_id, &t->secret);
	if (e != NULL)
		return e;
	if ((e = repository_check(t, &p)) != NULL)
		return e;
	if ((e = push_fire(t, &p)) != NULL || t->result.made == 0)
		return e;
	one.deployments.s = t->result.ids.data;
	return hook_delivery_insert(db, &one);
}

/* Responds with the current state of the deployments, without their variables:
 * users of the Git server who have no access to them can see the response. */
static const struct err *
take_answer(struct take *t)
{
	const char *at = t->result.ids.data, *before = "";
	const struct err *e = NULL;
	struct deployment d;
	struct buf b;
	int64_t id;
	size_t len;

	buf_init(&b, ANSWER_MAX);
	buf_puts(&b, "{\"data\":[");
	for (; e == NULL && *at != '\0'; at += len) {
		at += strspn(at, "[,]");
		len = strspn(at, "0123456789");
		arena_clear(t->a);
		if (!num_parse(arena_strndup(t->a, at, len), 1, NUM_SAFE, &id))
			break;
		e = deployment_by_id(t->rq->db, t->a, id, &d);
		if (e != NULL && e->code == ERR_NOTFOUND) {
			e = NULL; /* it was old and has been deleted */
			continue;
		}
		buf_puts(&b, before);
		json_write(&b, &hook_deployment_shape, &d, 0);
		before = ",";
	}
	buf_puts(&b, "]}");
	if (e == NULL && (e = buf_check(&b)) == NULL)
		answer_json(t->rq, b.data, b.len, -1);
	buf_release(&b);
	return e;
}

/* Git servers show the headers of responses in their lists of deliveries. */
static const struct err *
event_ignore(struct req *rq, const char *why)
{
	answer_status(rq, 204);
	answer_header(rq, IGNORED, "%s", why);
	return NULL;
}

static const char *
take_ignored(const struct take *t)
{
	const struct pushed_result *r = &t->result;

	if (r->matching == 0)
		return "No trigger of the project matches the push.";
	if (r->caught > 0)
		return "A runner has found this push already, before its event "
		       "arrived.";
	log_info("project %lld: the push of %s is ignored: its message "
		 "contains %s",
	    (long long)t->rq->id[0], t->push->commit_hash, r->skip);
	return arena_printf(t->rq->a,
	    "The message of the pushed commit contains %s.", r->skip);
}

static const struct err *
push_take(struct req *rq, const struct hook_envelope *env,
    const struct hook_push *push)
{
	struct take t = { .rq = rq,
		.env = env,
		.push = push,
		.delivery = delivery_hash(rq, env) };
	const struct err *e;

	t.a = arena_open(DEPLOY_WORK);
	t.deploy = rules_context(rq, t.a);
	pushed_result_init(&t.result);
	e = req_transaction(rq, take_body, &t);
	if (e != NULL && e->sys == DB_DUPLICATE)
		e = take_find(&t); /* a concurrent request has accepted it */
	if (e == NULL && !t.again && t.result.made == 0)
		e = event_ignore(rq, take_ignored(&t));
	else if (e == NULL)
		e = take_answer(&t);
	if (e == NULL && t.result.made > 0 && !t.again)
		deploy_wake(&t.deploy);
	pushed_result_release(&t.result);
	arena_close(t.a);
	return e;
}

static const struct err *
event_take(struct req *rq)
{
	struct hook_envelope env;
	struct hook_push push;
	struct hook_secret secret;
	const struct err *e;

	if (rq->unready != NULL)
		return rq->unready;
	if ((e = hook_open(rq->a, rq->header, &env)) != NULL)
		return e;
	if ((e = signature_check(rq, &env, rq->id[0], &secret)) != NULL)
		return e;
	audited_nothing(rq);
	if (!env.push)
		return event_ignore(rq, "The event is not a push.");
	if ((e = hook_push_read(rq->a, &env, rq->text, rq->len, &push)) != NULL)
		return e;
	if (push.branch == NULL && push.tag == NULL)
		return event_ignore(rq,
		    "The push changes neither a branch nor a tag.");
	if (push.deleted)
		return event_ignore(rq, "The branch or tag was deleted.");
	if (push.test)
		return event_ignore(rq,
		    "The event is a test of the webhook: before and after are "
		    "the same commit.");
	return push_take(rq, &env, &push);
}

static const struct err *
api_hook_take(struct req *rq)
{
	const struct err *e = event_take(rq);
	enum scoreboard_hook result;

	if (e != NULL)
		result = err_kinds[e->code].http < 500 ?
		    SCOREBOARD_HOOK_REJECTED :
		    SCOREBOARD_HOOK_FAILED;
	else
		result = rq->answer.status == 204 ? SCOREBOARD_HOOK_IGNORED :
						    SCOREBOARD_HOOK_ACCEPTED;
	atomic_fetch_add(&rq->scoreboard->hooks[result], 1);
	return e;
}

static const enum err_code taken[] = { ERR_UNAUTHENTICATED, ERR_RATE,
	ERR__MAX };

_Static_assert(HOOK__MAX <= REQ_SENT, "a request holds all headers");

static bool
event_is_signed(const struct req *rq)
{
	return hook_is_signed(rq->header);
}

/* What the headers of push events mean, for the OpenAPI document. */
static const char *const header_docs[HOOK__MAX] = {
	[HOOK_GITEA_EVENT] = "Gitea: name of the event.",
	[HOOK_GITEA_DELIVERY] = "Gitea: id of the delivery.",
	[HOOK_GITEA_SIGNATURE] = "Gitea: HMAC-SHA-256 of the body, in hex.",
	[HOOK_FORGEJO_EVENT] = "Forgejo: name of the event.",
	[HOOK_FORGEJO_DELIVERY] = "Forgejo: id of the delivery.",
	[HOOK_FORGEJO_SIGNATURE] = "Forgejo: HMAC-SHA-256 of the body, in hex.",
	[HOOK_GOGS_EVENT] = "Gogs: name of the event.",
	[HOOK_GOGS_DELIVERY] = "Gogs: id of the delivery.",
	[HOOK_GOGS_SIGNATURE] = "Gogs: HMAC-SHA-256 of the body, in hex.",
	[HOOK_SOFT_EVENT] = "soft-serve: name of the event.",
	[HOOK_SOFT_DELIVERY] = "soft-serve: id of the delivery.",
	[HOOK_SOFT_SIGNATURE] =
	    "soft-serve: sha256= followed by HMAC-SHA-256 of the body, in hex.",
	[HOOK_SLIPWAY_EVENT] = "Hook for bare repositories: push.",
	[HOOK_SLIPWAY_DELIVERY] =
	    "Hook for bare repositories: id of the delivery.",
	[HOOK_SLIPWAY_SIGNATURE] =
	    ("Hook for bare repositories: sha256= "
	     "followed by HMAC-SHA-256 of the body, in hex."),
	[HOOK_GITLAB_EVENT] = "GitLab: name of the event.",
	[HOOK_GITLAB_TOKEN] = "GitLab: the secret itself.",
	[HOOK_GITLAB_UUID] = "GitLab: id of the event.",
	[HOOK_GITHUB_EVENT] = "GitHub: name of the event.",
	[HOOK_GITHUB_DELIVERY] = "GitHub: id of the delivery.",
	[HOOK_HUB_SIGNATURE] =
	    "GitHub: sha256= followed by HMAC-SHA-256 of the body, in hex.",
	[HOOK_WEBHOOK_ID] = "Standard Webhooks: id of the delivery.",
	[HOOK_WEBHOOK_TIMESTAMP] =
	    "Standard Webhooks: Unix time of the delivery, within 5 minutes.",
	[HOOK_WEBHOOK_SIGNATURE] =
	    "Standard Webhooks: v1, followed by HMAC-SHA-256 in base64.",
	[HOOK_IDEMPOTENCY_KEY] = "GitLab: id of the delivery.",
};

static const struct route routes[] = {
	{ .method = METHOD_PUT,
	    .path = "/api/projects/{id}/hook-secret",
	    .role = ROLE_MAINTAINER,
	    .handler = api_hook_secret,
	    .operation = "renewHookSecret",
	    .summary = "Create a new secret for push events; the response is "
		       "the only one to show it",
	    .out = &hook_access_shape,
	    .status = 200 },
	{ .method = METHOD_POST,
	    .path = "/api/hooks/{id}",
	    .flags = ROUTE_SIGNED,
	    .is_signed = event_is_signed,
	    .handler = api_hook_take,
	    .operation = "takePush",
	    .summary = "Accept a push event of Gitea, Forgejo, GitLab or "
		       "GitHub, signed with the project's hook secret; 204 if "
		       "it starts no deployment",
	    .doc =
		"The body is an event as the Git server sends it, named by "
		"X-Gitea-Event, X-GitHub-Event or X-Gitlab-Event and signed by "
		"X-Gitea-Signature, X-Forgejo-Signature, X-Hub-Signature-256, "
		"X-Gitlab-Token or webhook-signature. A repeated delivery "
		"returns the same deployments. A push of a commit whose "
		"message contains [skip ci], [ci skip], [no ci], "
		"[skip slipway] or [slipway skip] starts nothing. With 204, "
		"X-Slipway-Ignored says why. If the branch or tag is at "
		"another commit when the runner fetches, the deployment is "
		"canceled as superseded. A signed event is limited to 32 MiB. "
		"Events with a wrong signature are rate-limited.",
	    .out = &hook_deployment_shape,
	    .list = LIST_DATA,
	    .status = 202,
	    .errors = taken },
	ROUTE_END,
};

const struct resource hooks_resource = {
	.tag = "hooks",
	.about = "Push events from Git servers.",
	.routes = routes,
	.header_names = hook_headers,
	.header_docs = header_docs,
	.headers = HOOK__MAX,
};
