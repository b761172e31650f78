/* SPDX-License-Identifier: ISC */
/*
 * Push events as Git servers send them (webhooks): the kind of server according
 * to its headers, the kind of signature, and the content. Nothing in them is
 * trusted before the signature of the raw body has been verified.
 */
#ifndef SLIPWAY_FORGE_HOOK_H
#define SLIPWAY_FORGE_HOOK_H

#include "core/arena.h"
#include "core/field.h"

enum hook_header {
	HOOK_GITEA_EVENT,       /* X-Gitea-Event */
	HOOK_GITEA_DELIVERY,    /* X-Gitea-Delivery */
	HOOK_GITEA_SIGNATURE,   /* X-Gitea-Signature */
	HOOK_FORGEJO_EVENT,     /* X-Forgejo-Event */
	HOOK_FORGEJO_DELIVERY,  /* X-Forgejo-Delivery */
	HOOK_FORGEJO_SIGNATURE, /* X-Forgejo-Signature */
	HOOK_GOGS_EVENT,        /* X-Gogs-Event */
	HOOK_GOGS_DELIVERY,     /* X-Gogs-Delivery */
	HOOK_GOGS_SIGNATURE,    /* X-Gogs-Signature */
	HOOK_SOFT_EVENT,        /* X-SoftServe-Event */
	HOOK_SOFT_DELIVERY,     /* X-SoftServe-Delivery */
	HOOK_SOFT_SIGNATURE,    /* X-SoftServe-Signature */
	HOOK_SLIPWAY_EVENT,     /* X-Slipway-Event: src/forge/post-receive.in */
	HOOK_SLIPWAY_DELIVERY,  /* X-Slipway-Delivery */
	HOOK_SLIPWAY_SIGNATURE, /* X-Slipway-Signature */
	HOOK_GITLAB_EVENT,      /* X-Gitlab-Event */
	HOOK_GITLAB_TOKEN,      /* X-Gitlab-Token */
	HOOK_GITLAB_UUID,       /* X-Gitlab-Event-UUID */
	HOOK_GITHUB_EVENT,      /* X-GitHub-Event */
	HOOK_GITHUB_DELIVERY,   /* X-GitHub-Delivery */
	HOOK_HUB_SIGNATURE,     /* X-Hub-Signature-256 */
	HOOK_WEBHOOK_ID,        /* webhook-id, Standard Webhooks */
	HOOK_WEBHOOK_TIMESTAMP, /* webhook-timestamp */
	HOOK_WEBHOOK_SIGNATURE, /* webhook-signature */
	HOOK_IDEMPOTENCY_KEY,   /* Idempotency-Key, GitLab */
	HOOK__MAX
};
extern const char *const hook_headers[HOOK__MAX]; /* as on the wire */

enum hook_signing {
	HOOK_HMAC,     /* hex of HMAC-SHA-256 over the body */
	HOOK_PLAIN,    /* the secret itself */
	HOOK_STANDARD, /* base64 of HMAC-SHA-256 over "id.timestamp.body" */
};

/* The content of the headers. */
struct hook_envelope {
	const char *kind; /* gitea, gogs, soft-serve, git, gitlab, github */
	const char *event;
	bool push; /* push of a branch or tag; otherwise there is nothing to
		    * do */
	const char *delivery; /* its id; NULL = none */
	enum hook_signing signing;
	const char *signature; /* hex, secret or "v1,… v1,…"; NULL = none */
	const char *signed_id; /* HOOK_STANDARD */
	int64_t signed_at;     /* Unix time, 0 = none */
};

struct hook_push {
	const char *branch; /* NULL = not a branch */
	const char *tag;    /* NULL = not a tag */
	bool deleted;       /* it was deleted; there is nothing to deploy */
	bool test;          /* a test of the webhook: no commit changes */
	const char *commit_hash;    /* NULL = of a tag, and not known */
	const char *before;         /* the commit until then; NULL */
	const char *commit_message; /* of the head commit; NULL */
	struct list files;   /* const char *: changed files, as the event lists
			    * them */
	bool has_files;      /* the event lists the files of all its commits */
	const char *repo_id; /* decimal */
	const char *repo_path; /* "owner/name" */
	const char *pusher;    /* login; NULL */
};

/* Whether there is any signature, valid or not. */
bool hook_is_signed(const char *const header[HOOK__MAX]);
/* ERR_BAD_REQUEST if no header identifies a known server. */
MUSTCHECK const struct err *hook_open(struct arena *,
    const char *const header[HOOK__MAX], struct hook_envelope *out);
/* ERR_BAD_REQUEST if the body is not such an event. */
MUSTCHECK const struct err *hook_push_read(struct arena *,
    const struct hook_envelope *, const char *body, size_t len,
    struct hook_push *out);

#endif
