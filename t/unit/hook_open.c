/* SPDX-License-Identifier: ISC */
/* Identifies the Git server of an event and its signature by the headers. */
#include "core/str.h"
#include "forge/hook.h"
#include "tap.h"

#define HEX64 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static struct arena *a;

struct sent {
	enum hook_header which;
	const char *value;
};
#define SENT 12

static const struct row {
	const char *name;
	struct sent sent[SENT]; /* ends with a NULL value */
	const char *kind;       /* NULL = rejected */
	const char *event;
	bool push;
	const char *delivery;
	enum hook_signing signing;
	const char *signature;
	const char *signed_id;
	int64_t signed_at;
} rows[] = {
	{ .name = "Gitea, which adds the headers of GitHub",
	    .sent = { { HOOK_GITEA_EVENT, "push" },
		{ HOOK_GITEA_DELIVERY, "d-1" }, { HOOK_GITEA_SIGNATURE, HEX64 },
		{ HOOK_GITHUB_EVENT, "push" }, { HOOK_GITHUB_DELIVERY, "d-2" },
		{ HOOK_HUB_SIGNATURE, "sha256=" HEX64 } },
	    .kind = "gitea",
	    .event = "push",
	    .push = true,
	    .delivery = "d-1",
	    .signature = HEX64 },
	{ .name = "Forgejo, which adds the headers of both",
	    .sent = { { HOOK_FORGEJO_EVENT, "push" },
		{ HOOK_FORGEJO_DELIVERY, "d-0" },
		{ HOOK_FORGEJO_SIGNATURE, "ab" }, { HOOK_GITEA_EVENT, "other" },
		{ HOOK_GITEA_DELIVERY, "d-1" }, { HOOK_GITEA_SIGNATURE, "cd" },
		{ HOOK_GITHUB_EVENT, "another" },
		{ HOOK_GITHUB_DELIVERY, "d-2" },
		{ HOOK_HUB_SIGNATURE, "sha256=ef" } },
	    .kind = "gitea",
	    .event = "push",
	    .push = true,
	    .delivery = "d-0",
	    .signature = "ab" },
	{ .name = "Forgejo without its own delivery id",
	    .sent = { { HOOK_FORGEJO_EVENT, "push" },
		{ HOOK_GITEA_DELIVERY, "d-1" } },
	    .kind = "gitea",
	    .event = "push",
	    .push = true,
	    .delivery = "d-1" },
	{ .name = "Gitea without a secret: an empty signature",
	    .sent = { { HOOK_GITEA_EVENT, "push" },
		{ HOOK_GITEA_SIGNATURE, "" },
		{ HOOK_HUB_SIGNATURE, "sha256=" } },
	    .kind = "gitea",
	    .event = "push",
	    .push = true },
	{ .name = "Gitea with the signature of GitHub alone",
	    .sent = { { HOOK_GITEA_EVENT, "push" },
		{ HOOK_HUB_SIGNATURE, "sha256=" HEX64 } },
	    .kind = "gitea",
	    .event = "push",
	    .push = true,
	    .signature = HEX64 },
	{ .name = "another event of Gitea",
	    .sent = { { HOOK_GITEA_EVENT, "issues" } },
	    .kind = "gitea",
	    .event = "issues" },
	{ .name = "a push event in upper case is another event",
	    .sent = { { HOOK_GITEA_EVENT, "PUSH" } },
	    .kind = "gitea",
	    .event = "PUSH" },
	{ .name = "GitHub",
	    .sent = { { HOOK_GITHUB_EVENT, "push" },
		{ HOOK_GITHUB_DELIVERY, "d-2" },
		{ HOOK_HUB_SIGNATURE, "sha256=" HEX64 } },
	    .kind = "github",
	    .event = "push",
	    .push = true,
	    .delivery = "d-2",
	    .signature = HEX64 },
	{ .name = "GitHub's ping",
	    .sent = { { HOOK_GITHUB_EVENT, "ping" } },
	    .kind = "github",
	    .event = "ping" },
	{ .name = "GitHub with the signature of Gitea",
	    .sent = { { HOOK_GITHUB_EVENT, "push" },
		{ HOOK_GITEA_SIGNATURE, HEX64 } },
	    .kind = "github",
	    .event = "push",
	    .push = true },
	{ .name = "GitLab",
	    .sent = { { HOOK_GITLAB_EVENT, "Push Hook" },
		{ HOOK_GITLAB_TOKEN, "the secret" },
		{ HOOK_GITLAB_UUID, "u-1" }, { HOOK_IDEMPOTENCY_KEY, "i-1" } },
	    .kind = "gitlab",
	    .event = "Push Hook",
	    .push = true,
	    .delivery = "i-1",
	    .signing = HOOK_PLAIN,
	    .signature = "the secret" },
	{ .name = "an older GitLab",
	    .sent = { { HOOK_GITLAB_EVENT, "Push Hook" },
		{ HOOK_GITLAB_TOKEN, "sha256=x" },
		{ HOOK_GITLAB_UUID, "u-1" } },
	    .kind = "gitlab",
	    .event = "Push Hook",
	    .push = true,
	    .delivery = "u-1",
	    .signing = HOOK_PLAIN,
	    .signature = "sha256=x" },
	{ .name = "GitLab without a token ignores other signatures",
	    .sent = { { HOOK_GITLAB_EVENT, "Push Hook" },
		{ HOOK_GITLAB_TOKEN, "" },
		{ HOOK_HUB_SIGNATURE, "sha256=" HEX64 } },
	    .kind = "gitlab",
	    .event = "Push Hook",
	    .push = true,
	    .signing = HOOK_PLAIN },
	{ .name = "a tag push of GitLab",
	    .sent = { { HOOK_GITLAB_EVENT, "Tag Push Hook" },
		{ HOOK_GITLAB_TOKEN, "t" } },
	    .kind = "gitlab",
	    .event = "Tag Push Hook",
	    .push = true,
	    .signing = HOOK_PLAIN,
	    .signature = "t" },
	{ .name =
		"GitLab with Standard Webhooks takes precedence over its token",
	    .sent = { { HOOK_GITLAB_EVENT, "Push Hook" },
		{ HOOK_GITLAB_TOKEN, "t" }, { HOOK_WEBHOOK_ID, "w-1" },
		{ HOOK_WEBHOOK_TIMESTAMP, "1700000000" },
		{ HOOK_WEBHOOK_SIGNATURE, "v1,AAAA v1,BBBB" },
		{ HOOK_GITLAB_UUID, "u-1" }, { HOOK_IDEMPOTENCY_KEY, "i-1" } },
	    .kind = "gitlab",
	    .event = "Push Hook",
	    .push = true,
	    .delivery = "w-1",
	    .signing = HOOK_STANDARD,
	    .signature = "v1,AAAA v1,BBBB",
	    .signed_id = "w-1",
	    .signed_at = 1700000000 },
	{ .name = "an empty webhook-signature is ignored",
	    .sent = { { HOOK_GITLAB_EVENT, "Push Hook" },
		{ HOOK_GITLAB_TOKEN, "t" }, { HOOK_WEBHOOK_SIGNATURE, "" } },
	    .kind = "gitlab",
	    .event = "Push Hook",
	    .push = true,
	    .signing = HOOK_PLAIN,
	    .signature = "t" },
	{ .name = "an empty event of Gitea is ignored",
	    .sent = { { HOOK_GITEA_EVENT, "" }, { HOOK_GITHUB_EVENT, "push" } },
	    .kind = "github",
	    .event = "push",
	    .push = true },
	{ .name = "no header at all" },
	{ .name = "an empty event", .sent = { { HOOK_GITHUB_EVENT, "" } } },
	{ .name = "signatures without an event",
	    .sent = { { HOOK_GITEA_SIGNATURE, HEX64 },
		{ HOOK_HUB_SIGNATURE, "sha256=" HEX64 },
		{ HOOK_GITLAB_TOKEN, "t" } } },
	{ .name = "Standard Webhooks of an unknown server",
	    .sent = { { HOOK_WEBHOOK_ID, "w-1" },
		{ HOOK_WEBHOOK_TIMESTAMP, "1700000000" },
		{ HOOK_WEBHOOK_SIGNATURE, "v1,AAAA" } } },
	{ .name = "a signature without an id",
	    .sent = { { HOOK_GITLAB_EVENT, "Push Hook" },
		{ HOOK_WEBHOOK_TIMESTAMP, "1700000000" },
		{ HOOK_WEBHOOK_SIGNATURE, "v1,AAAA" } } },
	{ .name = "a signature with an empty id",
	    .sent = { { HOOK_GITLAB_EVENT, "Push Hook" },
		{ HOOK_WEBHOOK_ID, "" },
		{ HOOK_WEBHOOK_TIMESTAMP, "1700000000" },
		{ HOOK_WEBHOOK_SIGNATURE, "v1,AAAA" } } },
	{ .name = "a signature without a time",
	    .sent = { { HOOK_GITLAB_EVENT, "Push Hook" },
		{ HOOK_WEBHOOK_ID, "w-1" },
		{ HOOK_WEBHOOK_SIGNATURE, "v1,AAAA" } } },
};

static const char *const bad_times[] = { "0", "-1", "+1", " 1", "1.5", "1e9",
	"0x10", "01700000000", "1700000000s", "9007199254740992",
	"99999999999999999999", "now" };

static void
row_run(const struct row *r)
{
	const char *header[HOOK__MAX] = { NULL };
	const struct sent *s;
	const struct err *e;
	struct hook_envelope got;

	for (s = r->sent; s->value != NULL; s++)
		header[s->which] = s->value;
	e = hook_open(a, header, &got);
	if (r->kind == NULL) {
		ok(e != NULL && e->code == ERR_BAD_REQUEST &&
			e->detail[0] != '\0',
		    "rejected: %s", r->name);
		return;
	}
	if (!ok(e == NULL, "%s", r->name))
		return;
	is_str(got.kind, r->kind, "... has its kind");
	is_str(got.event, r->event, "... has its event");
	is_int(got.push, r->push, "... is a push or not");
	is_str(got.delivery, r->delivery, "... has its delivery id");
	is_int(got.signing, r->signing, "... has its kind of signature");
	is_str(got.signature == NULL || got.signature[0] == '\0' ?
		NULL :
		got.signature,
	    r->signature, "... has its signature");
	is_str(got.signed_id, r->signed_id, "... has the signed id");
	is_int(got.signed_at, r->signed_at, "... has the signed time");
}

static void
times_run(void)
{
	const char *header[HOOK__MAX] = { NULL };
	struct hook_envelope got;
	size_t i;

	header[HOOK_GITLAB_EVENT] = "Push Hook";
	header[HOOK_WEBHOOK_ID] = "w-1";
	header[HOOK_WEBHOOK_SIGNATURE] = "v1,AAAA";
	for (i = 0; i < sizeof(bad_times) / sizeof(bad_times[0]); i++) {
		header[HOOK_WEBHOOK_TIMESTAMP] = bad_times[i];
		ok(hook_open(a, header, &got) != NULL, "invalid time: %s",
		    bad_times[i]);
	}
}

static void
numbers_run(void)
{
	const char *header[HOOK__MAX] = { NULL };
	struct hook_envelope got;
	char id[257];

	(void)memset(id, 'x', sizeof(id));
	id[255] = '\0';
	header[HOOK_GITHUB_EVENT] = "push";
	header[HOOK_GITHUB_DELIVERY] = id;
	ok(hook_open(a, header, &got) == NULL && str_eq(got.delivery, id),
	    "a delivery id of 255 bytes is accepted");
	id[255] = 'x';
	id[256] = '\0';
	ok(hook_open(a, header, &got) != NULL,
	    "a delivery id of 256 bytes is rejected");
}

int
main(void)
{
	size_t i;

	a = arena_open((size_t)1 << 20);
	for (i = 0; i < HOOK__MAX; i++)
		ok(hook_headers[i] != NULL, "header %zu has a name", i);
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		row_run(&rows[i]);
	times_run();
	numbers_run();
	arena_close(a);
	return tap_done();
}
