/* SPDX-License-Identifier: ISC */
/* Which Git server an event comes from, by its headers, and how it is signed. */
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
	const char *kind;       /* NULL = refused */
	const char *event;
	bool push;
	const char *delivery;
	enum hook_signing signing;
	const char *signature;
	const char *signed_id;
	int64_t signed_at;
} rows[] = {
	{ .name = "Gitea, which sends those of GitHub along",
	    .sent = { { HOOK_GITEA_EVENT, "push" },
		{ HOOK_GITEA_DELIVERY, "d-1" }, { HOOK_GITEA_SIGNATURE, HEX64 },
		{ HOOK_GITHUB_EVENT, "push" }, { HOOK_GITHUB_DELIVERY, "d-2" },
		{ HOOK_HUB_SIGNATURE, "sha256=" HEX64 } },
	    .kind = "gitea",
	    .event = "push",
	    .push = true,
	    .delivery = "d-1",
	    .signature = HEX64 },
	{ .name = "Forgejo, which sends those of both",
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
	{ .name = "Forgejo without a number of its own",
	    .sent = { { HOOK_FORGEJO_EVENT, "push" },
		{ HOOK_GITEA_DELIVERY, "d-1" } },
	    .kind = "gitea",
	    .event = "push",
	    .push = true,
	    .delivery = "d-1" },
	{ .name = "Gitea without a secret: its signature is empty",
	    .sent = { { HOOK_GITEA_EVENT, "push" },
		{ HOOK_GITEA_SIGNATURE, "" },
		{ HOOK_HUB_SIGNATURE, "sha256=" } },
	    .kind = "gitea",
	    .event = "push",
	    .push = true },
	{ .name = "Gitea with GitHub's signature alone",
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
	{ .name = "a push in capitals is another event",
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
	{ .name = "GitHub with Gitea's signature, which is not its own",
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
	{ .name = "GitLab, older",
	    .sent = { { HOOK_GITLAB_EVENT, "Push Hook" },
		{ HOOK_GITLAB_TOKEN, "sha256=x" },
		{ HOOK_GITLAB_UUID, "u-1" } },
	    .kind = "gitlab",
	    .event = "Push Hook",
	    .push = true,
	    .delivery = "u-1",
	    .signing = HOOK_PLAIN,
	    .signature = "sha256=x" },
	{ .name = "GitLab without a token takes no other's signature",
	    .sent = { { HOOK_GITLAB_EVENT, "Push Hook" },
		{ HOOK_GITLAB_TOKEN, "" },
		{ HOOK_HUB_SIGNATURE, "sha256=" HEX64 } },
	    .kind = "gitlab",
	    .event = "Push Hook",
	    .push = true,
	    .signing = HOOK_PLAIN },
	{ .name = "a tag of GitLab",
	    .sent = { { HOOK_GITLAB_EVENT, "Tag Push Hook" },
		{ HOOK_GITLAB_TOKEN, "t" } },
	    .kind = "gitlab",
	    .event = "Tag Push Hook",
	    .signing = HOOK_PLAIN,
	    .signature = "t" },
	{ .name = "GitLab by Standard Webhooks, before its token",
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
	{ .name = "an empty webhook-signature is none",
	    .sent = { { HOOK_GITLAB_EVENT, "Push Hook" },
		{ HOOK_GITLAB_TOKEN, "t" }, { HOOK_WEBHOOK_SIGNATURE, "" } },
	    .kind = "gitlab",
	    .event = "Push Hook",
	    .push = true,
	    .signing = HOOK_PLAIN,
	    .signature = "t" },
	{ .name = "an empty event of Gitea is none",
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
	{ .name = "Standard Webhooks of a server that is not named",
	    .sent = { { HOOK_WEBHOOK_ID, "w-1" },
		{ HOOK_WEBHOOK_TIMESTAMP, "1700000000" },
		{ HOOK_WEBHOOK_SIGNATURE, "v1,AAAA" } } },
	{ .name = "a signature without an id",
	    .sent = { { HOOK_GITLAB_EVENT, "Push Hook" },
		{ HOOK_WEBHOOK_TIMESTAMP, "1700000000" },
		{ HOOK_WEBHOOK_SIGNATURE, "v1,AAAA" } } },
	{ .name = "with an empty id",
	    .sent = { { HOOK_GITLAB_EVENT, "Push Hook" },
		{ HOOK_WEBHOOK_ID, "" },
		{ HOOK_WEBHOOK_TIMESTAMP, "1700000000" },
		{ HOOK_WEBHOOK_SIGNATURE, "v1,AAAA" } } },
	{ .name = "without a time",
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
		    "refused: %s", r->name);
		return;
	}
	if (!ok(e == NULL, "%s", r->name))
		return;
	is_str(got.kind, r->kind, "... of that kind");
	is_str(got.event, r->event, "... its event");
	is_int(got.push, r->push, "... which is a push or not");
	is_str(got.delivery, r->delivery, "... its number");
	is_int(got.signing, r->signing, "... signed in that way");
	is_str(got.signature == NULL || got.signature[0] == '\0' ?
		NULL :
		got.signature,
	    r->signature, "... its signature");
	is_str(got.signed_id, r->signed_id, "... the id that is signed");
	is_int(got.signed_at, r->signed_at, "... and the time");
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
		ok(hook_open(a, header, &got) != NULL, "no time: %s",
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
	    "a number of 255 bytes");
	id[255] = 'x';
	id[256] = '\0';
	ok(hook_open(a, header, &got) != NULL, "and none of 256");
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
