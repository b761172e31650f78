/* SPDX-License-Identifier: ISC */
#include "forge/hook.h"

#include <string.h>
#include <strings.h>

#include "core/branch.h"
#include "core/glob.h"
#include "core/num.h"
#include "core/str.h"
#include "core/utf8.h"
#include "json/json.h"

#define BRANCHES "refs/heads/"
#define TAGS "refs/tags/"
#define PATH_MAX_LEN 1000
#define ID_MAX 20
#define HASH_MAX 64
#define COMMITS_MAX                                                            \
	1000 /* of which an event lists the files, well below the
			  * servers' limits */
#define MESSAGE_MAX 16384
#define DELIVERY_MAX 255

const char *const hook_headers[HOOK__MAX] = {
	[HOOK_GITEA_EVENT] = "X-Gitea-Event",
	[HOOK_GITEA_DELIVERY] = "X-Gitea-Delivery",
	[HOOK_GITEA_SIGNATURE] = "X-Gitea-Signature",
	[HOOK_FORGEJO_EVENT] = "X-Forgejo-Event",
	[HOOK_FORGEJO_DELIVERY] = "X-Forgejo-Delivery",
	[HOOK_FORGEJO_SIGNATURE] = "X-Forgejo-Signature",
	[HOOK_GOGS_EVENT] = "X-Gogs-Event",
	[HOOK_GOGS_DELIVERY] = "X-Gogs-Delivery",
	[HOOK_GOGS_SIGNATURE] = "X-Gogs-Signature",
	[HOOK_SOFT_EVENT] = "X-SoftServe-Event",
	[HOOK_SOFT_DELIVERY] = "X-SoftServe-Delivery",
	[HOOK_SOFT_SIGNATURE] = "X-SoftServe-Signature",
	[HOOK_SLIPWAY_EVENT] = "X-Slipway-Event",
	[HOOK_SLIPWAY_DELIVERY] = "X-Slipway-Delivery",
	[HOOK_SLIPWAY_SIGNATURE] = "X-Slipway-Signature",
	[HOOK_GITLAB_EVENT] = "X-Gitlab-Event",
	[HOOK_GITLAB_TOKEN] = "X-Gitlab-Token",
	[HOOK_GITLAB_UUID] = "X-Gitlab-Event-UUID",
	[HOOK_GITHUB_EVENT] = "X-GitHub-Event",
	[HOOK_GITHUB_DELIVERY] = "X-GitHub-Delivery",
	[HOOK_HUB_SIGNATURE] = "X-Hub-Signature-256",
	[HOOK_WEBHOOK_ID] = "webhook-id",
	[HOOK_WEBHOOK_TIMESTAMP] = "webhook-timestamp",
	[HOOK_WEBHOOK_SIGNATURE] = "webhook-signature",
	[HOOK_IDEMPOTENCY_KEY] = "Idempotency-Key",
};

#define P(m, p) JSON_PATH(struct push, m, p, .must = false)

/* The members of a body. */
struct push {
	const char *ref;
	const char
	    *ref_type; /* of a new branch or tag, whose `ref` is a name */
	const char *before;
	const char *after;
	const char *head_id;
	const char *head_message;
	const char *repo_id;
	const char *repo_path;
	const char *pusher;
	int64_t total; /* number of commits; 0 = unknown */
	bool forced;
};

static const struct json_path gitea_paths[] = {
	P(ref, "ref"),
	P(before, "before"),
	P(after, "after"),
	P(head_id, "head_commit.id"),
	JSON_PATH(struct push, head_message, "head_commit.message",
	    .spare = true),
	P(repo_id, "repository.id"),
	P(repo_path, "repository.full_name"),
	P(pusher, "sender.login"),
	P(total, "total_commits"),
	P(forced, "forced"),
	JSON_PATH_END,
};
/* Gogs has no push event for tags: the event of a new tag names its commit. */
static const struct json_path gogs_paths[] = {
	P(ref, "ref"),
	P(ref_type, "ref_type"),
	P(before, "before"),
	P(after, "after"),
	P(head_id, "sha"),
	P(repo_id, "repository.id"),
	P(repo_path, "repository.full_name"),
	P(pusher, "sender.login"),
	JSON_PATH_END,
};
static const struct json_path soft_paths[] = {
	P(ref, "ref"),
	P(before, "before"),
	P(after, "after"),
	P(repo_id, "repository.id"),
	P(repo_path, "repository.name"),
	P(pusher, "sender.username"),
	JSON_PATH_END,
};
static const struct json_path gitlab_paths[] = {
	P(ref, "ref"),
	P(before, "before"),
	P(after, "after"),
	P(head_id, "checkout_sha"),
	P(repo_id, "project.id"),
	P(repo_path, "project.path_with_namespace"),
	P(pusher, "user_username"),
	P(total, "total_commits_count"),
	JSON_PATH_END,
};

/* The kind of server, by a header that only it sends. Forgejo and Gitea also
 * send the headers of Gogs and GitHub, and Gogs those of GitHub, so they come in
 * this order. */
static const struct kind {
	const char *name;
	enum hook_header event;
	const char *push;
	const char *tag;              /* event of a tag; NULL = the same */
	enum hook_header delivery[3]; /* the first one present counts */
	enum hook_header signature;   /* HOOK__MAX = GitHub's */
	const struct json_path *paths;
	const char *list; /* of the commits, if the head commit is not a
			   * member */
} kinds[] = {
	{ "gitea", HOOK_FORGEJO_EVENT, "push", NULL,
	    { HOOK_FORGEJO_DELIVERY, HOOK_GITEA_DELIVERY, HOOK_GITEA_DELIVERY },
	    HOOK_FORGEJO_SIGNATURE, gitea_paths, NULL },
	{ "gitea", HOOK_GITEA_EVENT, "push", NULL,
	    { HOOK_GITEA_DELIVERY, HOOK_GITEA_DELIVERY, HOOK_GITEA_DELIVERY },
	    HOOK_GITEA_SIGNATURE, gitea_paths, NULL },
	{ "gogs", HOOK_GOGS_EVENT, "push", "create",
	    { HOOK_GOGS_DELIVERY, HOOK_GOGS_DELIVERY, HOOK_GOGS_DELIVERY },
	    HOOK_GOGS_SIGNATURE, gogs_paths, "commits" },
	{ "soft-serve", HOOK_SOFT_EVENT, "push", NULL,
	    { HOOK_SOFT_DELIVERY, HOOK_SOFT_DELIVERY, HOOK_SOFT_DELIVERY },
	    HOOK_SOFT_SIGNATURE, soft_paths, "commits" },
	{ "git", HOOK_SLIPWAY_EVENT, "push", NULL,
	    { HOOK_SLIPWAY_DELIVERY, HOOK_SLIPWAY_DELIVERY,
		HOOK_SLIPWAY_DELIVERY },
	    HOOK_SLIPWAY_SIGNATURE, gitea_paths, NULL },
	{ "gitlab", HOOK_GITLAB_EVENT, "Push Hook", "Tag Push Hook",
	    { HOOK_WEBHOOK_ID, HOOK_IDEMPOTENCY_KEY, HOOK_GITLAB_UUID },
	    HOOK_GITLAB_TOKEN, gitlab_paths, "commits" },
	{ "github", HOOK_GITHUB_EVENT, "push", NULL,
	    { HOOK_GITHUB_DELIVERY, HOOK_GITHUB_DELIVERY,
		HOOK_GITHUB_DELIVERY },
	    HOOK_HUB_SIGNATURE, gitea_paths, NULL },
};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

/* The value of a header, NULL if it is empty (Gitea sends an empty signature if
 * no secret is set). */
static const char *
said(const char *const header[HOOK__MAX], enum hook_header which)
{
	const char *s = header[which];

	return s != NULL && s[0] != '\0' ? s : NULL;
}

bool
hook_is_signed(const char *const header[HOOK__MAX])
{
	static const enum hook_header any[] = { HOOK_GITEA_SIGNATURE,
		HOOK_FORGEJO_SIGNATURE, HOOK_GOGS_SIGNATURE,
		HOOK_SOFT_SIGNATURE, HOOK_SLIPWAY_SIGNATURE, HOOK_GITLAB_TOKEN,
		HOOK_HUB_SIGNATURE, HOOK_WEBHOOK_SIGNATURE };
	size_t i;

	for (i = 0; i < sizeof(any) / sizeof(any[0]); i++)
		if (said(header, any[i]) != NULL)
			return true;
	return false;
}

/* Accepts "sha256=HEX" and "HEX". */
static const char *
hex_of(const char *s)
{
	if (s != NULL && str_starts(s, "sha256="))
		s += strlen("sha256=");
	return s;
}

static const struct err *
standard_open(const char *const header[HOOK__MAX], struct hook_envelope *out)
{
	out->signing = HOOK_STANDARD;
	out->signature = said(header, HOOK_WEBHOOK_SIGNATURE);
	out->signed_id = said(header, HOOK_WEBHOOK_ID);
	if (said(header, HOOK_WEBHOOK_TIMESTAMP) == NULL ||
	    out->signed_id == NULL ||
	    !num_parse(header[HOOK_WEBHOOK_TIMESTAMP], 1, NUM_SAFE,
		&out->signed_at))
		return err_public(ERR_BAD_REQUEST,
		    "webhook-signature requires webhook-id and "
		    "webhook-timestamp.");
	return NULL;
}

const struct err *
hook_open(struct arena *a, const char *const header[HOOK__MAX],
    struct hook_envelope *out)
{
	const struct kind *k = kinds;
	const char *id = NULL;
	size_t i;

	*out = (struct hook_envelope){ .kind = NULL };
	while (k < kinds + KINDS && said(header, k->event) == NULL)
		k++;
	if (k == kinds + KINDS)
		return err_public(ERR_BAD_REQUEST,
		    "No header identifies the Git server (X-Gitea-Event, "
		    "X-Gitlab-Event, X-GitHub-Event, X-Gogs-Event, "
		    "X-SoftServe-Event, X-Slipway-Event).");
	out->kind = k->name;
	out->event = arena_strdup(a, header[k->event]);
	out->push = strcmp(out->event, k->push) == 0 ||
	    str_eq(out->event, k->tag);
	for (i = 0; i < 3 && id == NULL; i++)
		id = said(header, k->delivery[i]);
	if (id != NULL && strlen(id) > DELIVERY_MAX)
		return err_public(ERR_BAD_REQUEST,
		    "The id of the delivery is longer than %d bytes.",
		    DELIVERY_MAX);
	out->delivery = id;
	if (said(header, HOOK_WEBHOOK_SIGNATURE) != NULL)
		return standard_open(header, out);
	out->signature = said(header, k->signature);
	out->signing = k->signature == HOOK_GITLAB_TOKEN ? HOOK_PLAIN :
							   HOOK_HMAC;
	if (out->signature == NULL && out->signing == HOOK_HMAC)
		out->signature = said(header, HOOK_HUB_SIGNATURE);
	if (out->signing == HOOK_HMAC)
		out->signature = hex_of(out->signature);
	return NULL;
}

static bool
is_hash(const char *s)
{
	size_t len = strlen(s);

	return (len == 40 || len == HASH_MAX) &&
	    strspn(s, "0123456789abcdef") == len;
}

static bool
is_zero(const char *s)
{
	return strspn(s, "0") == strlen(s);
}

/* Cuts the text to a maximum of bytes, at a character boundary. */
static const char *
cut(struct arena *a, const char *text)
{
	char *out = arena_strndup(a, text, strnlen(text, MESSAGE_MAX));
	size_t len = strlen(out);

	while (!utf8_valid(out, len))
		out[--len] = '\0';
	return out;
}

/* A pushed commit. */
struct pushed {
	const char *id;
	const char *message;
};
static const struct json_path pushed_paths[] = {
	JSON_PATH(struct pushed, id, "id", .must = false),
	JSON_PATH(struct pushed, message, "message", .spare = true),
	JSON_PATH_END,
};

/* Finds the message of the head commit among the pushed commits. */
static void
message_find(struct arena *a, const char *list, const char *body, size_t len,
    struct push *p)
{
	const struct pushed *c;
	struct list all;
	size_t i;

	/* a push without the message is still valid */
	if (json_pick_member(a, list, pushed_paths, sizeof(*c), body, len,
		&all) != NULL)
		return;
	c = all.items;
	for (i = 0; i < all.n; i++)
		if (str_eq(c[i].id, p->head_id))
			p->head_message = c[i].message;
}

static const struct kind *
kind_of(const char *name)
{
	size_t i;

	for (i = 0; strcmp(kinds[i].name, name) != 0; i++)
		;
	return &kinds[i];
}

/* A valid "owner/name", with a decimal id if there is one. */
static bool
is_repository(const struct push *p)
{
	const char *id = p->repo_id;

	if (id != NULL &&
	    (*id == '\0' || strlen(id) > ID_MAX ||
		strspn(id, "0123456789") != strlen(id)))
		return false;
	return p->repo_path[0] != '\0' && !str_has_control(p->repo_path) &&
	    strlen(p->repo_path) <= PATH_MAX_LEN;
}

static const struct err *
body_pick(struct arena *a, const struct kind *k, const char *body, size_t len,
    struct push *out)
{
	const struct err *e;
	const char *rest;

	if ((e = json_pick_event(a, k->paths, body, len, out)) != NULL) {
		/* "The response is not JSON": here it is a body */
		rest = strchr(e->detail + strlen("The "), ' ');
		return err_public(ERR_BAD_REQUEST, "The body%s",
		    rest != NULL ? rest : " is not a push event.");
	}
	if (out->ref != NULL && out->ref_type != NULL) {
		out->ref = arena_printf(a, "%s%s",
		    strcmp(out->ref_type, "tag") == 0 ? TAGS : "created ",
		    out->ref);
		out->after = out->head_id;
	}
	if (out->ref == NULL || out->after == NULL || out->repo_path == NULL ||
	    !is_hash(out->after))
		return err_public(ERR_BAD_REQUEST,
		    "The body is not a push event: ref, after and the "
		    "repository are required.");
	if (out->head_id == NULL && str_starts(out->ref, BRANCHES))
		out->head_id = out->after;
	if (k->list != NULL)
		message_find(a, k->list, body, len, out);
	if (!is_repository(out))
		return err_public(ERR_BAD_REQUEST,
		    "The body is not a push event: the id or the path of the "
		    "repository is invalid.");
	return NULL;
}

/* Reads the name after the prefix; NULL if the ref has another one. */
static const struct err *
name_read(const char *ref, const char *prefix, const char *what,
    const char **out)
{
	const char *name;

	*out = NULL;
	if (!str_starts(ref, prefix))
		return NULL;
	name = ref + strlen(prefix);
	if (*name == '\0' || str_chars(name) > BRANCH_MAX ||
	    str_has_control(name))
		return err_public(ERR_BAD_REQUEST,
		    "The name of the %s is invalid.", what);
	*out = name;
	return NULL;
}

/* The commit after the push. Of a tag, `after` may be a tag object. */
static const char *
commit_of(const struct push *p)
{
	if (!str_starts(p->ref, TAGS))
		return p->after;
	return p->head_id != NULL && is_hash(p->head_id) ? p->head_id : NULL;
}

/* Reads the changed files. Servers list a few commits only, none for some
 * pushes, and not what a forced push undoes. */
static void
files_read(struct arena *a, const struct push *p, const char *body, size_t len,
    struct hook_push *out)
{
	static const char *const names[] = { "added", "removed", "modified",
		NULL };
	struct list commits;

	if (p->forced || out->before == NULL || is_zero(out->before) ||
	    json_pick_member(a, "commits", pushed_paths, sizeof(struct pushed),
		body, len, &commits) != NULL ||
	    commits.n == 0 || commits.n >= COMMITS_MAX ||
	    (p->total != 0 && (size_t)p->total != commits.n))
		return;
	out->has_files = json_pick_texts(a, "commits", names, body, len,
			     &out->files) == NULL &&
	    out->files.n > 0;
	out->files.n = glob_names_sort(out->files.items, out->files.n);
}

const struct err *
hook_push_read(struct arena *a, const struct hook_envelope *env,
    const char *body, size_t len, struct hook_push *out)
{
	struct push p = { .ref = NULL };
	const struct err *e;

	*out = (struct hook_push){ .branch = NULL };
	if ((e = body_pick(a, kind_of(env->kind), body, len, &p)) != NULL)
		return e;
	out->repo_id = p.repo_id;
	out->repo_path = p.repo_path;
	if (p.pusher != NULL && !str_has_control(p.pusher))
		out->pusher = p.pusher;
	out->deleted = is_zero(p.after);
	out->test = str_eq(p.before, p.after);
	if (!out->deleted)
		out->commit_hash = commit_of(&p);
	if (p.before != NULL && is_hash(p.before))
		out->before = p.before;
	if (str_eq(p.head_id, out->commit_hash) && p.head_message != NULL)
		out->commit_message = cut(a, p.head_message);
	files_read(a, &p, body, len, out);
	if ((e = name_read(p.ref, BRANCHES, "branch", &out->branch)) != NULL)
		return e;
	return name_read(p.ref, TAGS, "tag", &out->tag);
}
