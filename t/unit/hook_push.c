/* SPDX-License-Identifier: ISC */
/* Push events of Gitea, Forgejo, GitLab and GitHub, valid and invalid. */
#include "core/buf.h"
#include "core/str.h"
#include "core/utf8.h"
#include "forge/hook.h"
#include "tap.h"

#define HASH "00112233445566778899aabbccddeeff00112233"
#define LONG_HASH HASH "445566778899aabbccddeeff"
#define ZERO "0000000000000000000000000000000000000000"
#define ZERO_LONG ZERO "000000000000000000000000"

static struct arena *a;

/* Parts of a body, to be left out or replaced. */
#define REF "\"ref\":\"refs/heads/main\""
#define AFTER "\"after\":\"" HASH "\""
#define REPO "\"repository\":{\"id\":42,\"full_name\":\"owner/name\"}"
#define PROJECT "\"project\":{\"id\":42,\"path_with_namespace\":\"a/b/name\"}"
#define GOOD "{" REF "," AFTER "," REPO "}"

static const struct body {
	const char *name;
	const char *kind;
	const char *text;
	const char *branch; /* of the event */
	const char *hash;
	const char *message;
	const char *id;
	const char *path; /* NULL = rejected */
	const char *pusher;
	bool deleted;
} bodies[] = {
	{ .name = "Gitea",
	    .kind = "gitea",
	    .text = "{" REF ",\"before\":\"" ZERO "\"," AFTER
		    ",\"compare_url\":\"\",\"commits\":[{\"id\":\"" HASH
		    "\",\"message\":\"one\"}],\"total_commits\":1,"
		    "\"head_commit\":{\"id\":\"" HASH
		    "\",\"message\":\"Mend it\\n\\nat last\"}," REPO
		    ",\"pusher\":{\"id\":1,\"login\":\"ann\"},"
		    "\"sender\":{\"id\":1,\"login\":\"ann\"}}",
	    .branch = "main",
	    .hash = HASH,
	    .message = "Mend it\n\nat last",
	    .id = "42",
	    .path = "owner/name",
	    .pusher = "ann" },
	{ .name = "GitHub, whose pusher has a member name",
	    .kind = "github",
	    .text =
		"{" REF "," AFTER ",\"created\":false,\"deleted\":false,"
		"\"base_ref\":null,\"head_commit\":{\"id\":\"" HASH
		"\",\"message\":\"m\"}," REPO
		",\"pusher\":{\"name\":\"x\"},\"sender\":{\"login\":\"ann\"}}",
	    .branch = "main",
	    .hash = HASH,
	    .message = "m",
	    .id = "42",
	    .path = "owner/name",
	    .pusher = "ann" },
	{ .name = "GitLab, whose head is one of its commits",
	    .kind = "gitlab",
	    .text = "{\"object_kind\":\"push\"," REF "," AFTER
		    ",\"checkout_sha\":\"" HASH
		    "\",\"user_username\":\"ann\",\"project_id\":42," PROJECT
		    ",\"commits\":[{\"id\":\"" LONG_HASH
		    "\",\"message\":\"other\"},{\"id\":\"" HASH
		    "\",\"message\":\"head\"}],\"total_commits_count\":2}",
	    .branch = "main",
	    .hash = HASH,
	    .message = "head",
	    .id = "42",
	    .path = "a/b/name",
	    .pusher = "ann" },
	{ .name = "GitLab without the head among its commits",
	    .kind = "gitlab",
	    .text = "{" REF "," AFTER "," PROJECT
		    ",\"commits\":[{\"id\":\"x\",\"message\":\"other\"}]}",
	    .branch = "main",
	    .hash = HASH,
	    .id = "42",
	    .path = "a/b/name" },
	{ .name = "GitLab without commits",
	    .kind = "gitlab",
	    .text = "{" REF "," AFTER "," PROJECT ",\"commits\":null}",
	    .branch = "main",
	    .hash = HASH,
	    .id = "42",
	    .path = "a/b/name" },
	{ .name = "the required members",
	    .kind = "gitea",
	    .text = GOOD,
	    .branch = "main",
	    .hash = HASH,
	    .id = "42",
	    .path = "owner/name" },
	{ .name = "spaces and escapes",
	    .kind = "gitea",
	    .text =
		" {\"r\\u0065f\" :\"refs\\/heads\\/f\\u00fc\\ud83d\\ude80\" ,"
		"\n\"after\"\t: \"" HASH "\"," REPO "} ",
	    .branch = "f\xc3\xbc\xf0\x9f\x9a\x80",
	    .hash = HASH,
	    .id = "42",
	    .path = "owner/name" },
	{ .name = "a SHA-256 commit",
	    .kind = "gitea",
	    .text = "{" REF ",\"after\":\"" LONG_HASH "\"," REPO "}",
	    .branch = "main",
	    .hash = LONG_HASH,
	    .id = "42",
	    .path = "owner/name" },
	{ .name = "a deleted branch",
	    .kind = "gitea",
	    .text = "{" REF ",\"after\":\"" ZERO "\",\"head_commit\":null," REPO
		    "}",
	    .branch = "main",
	    .id = "42",
	    .path = "owner/name",
	    .deleted = true },
	{ .name = "a deleted branch with SHA-256",
	    .kind = "github",
	    .text = "{" REF ",\"after\":\"" ZERO_LONG "\"," REPO "}",
	    .branch = "main",
	    .id = "42",
	    .path = "owner/name",
	    .deleted = true },
	{ .name = "a deleted branch of GitLab, whose checkout_sha is null",
	    .kind = "gitlab",
	    .text = "{" REF ",\"after\":\"" ZERO
		    "\",\"checkout_sha\":null,\"commits\":[]," PROJECT "}",
	    .branch = "main",
	    .id = "42",
	    .path = "a/b/name",
	    .deleted = true },
	{ .name = "a tag, whose object need not be a commit",
	    .kind = "gitea",
	    .text = "{\"ref\":\"refs/tags/v1\"," AFTER "," REPO "}",
	    .id = "42",
	    .path = "owner/name" },
	{ .name = "a ref of another kind",
	    .kind = "gitea",
	    .text = "{\"ref\":\"refs/pull/1/head\"," AFTER "," REPO "}",
	    .hash = HASH,
	    .id = "42",
	    .path = "owner/name" },
	{ .name = "the message of a commit that is not the head is ignored",
	    .kind = "gitea",
	    .text = "{" REF "," AFTER ",\"head_commit\":{\"id\":\"" LONG_HASH
		    "\",\"message\":\"other\"}," REPO "}",
	    .branch = "main",
	    .hash = HASH,
	    .id = "42",
	    .path = "owner/name" },
	{ .name = "a message of another type is ignored",
	    .kind = "gitea",
	    .text = "{" REF "," AFTER ",\"head_commit\":{\"id\":\"" HASH
		    "\",\"message\":[]}," REPO "}",
	    .branch = "main",
	    .hash = HASH,
	    .id = "42",
	    .path = "owner/name" },
	{ .name = "a login with control bytes is ignored",
	    .kind = "gitea",
	    .text = "{" REF "," AFTER "," REPO
		    ",\"sender\":{\"login\":\"a\\nb\"}}",
	    .branch = "main",
	    .hash = HASH,
	    .id = "42",
	    .path = "owner/name" },
	{ .name = "no id",
	    .kind = "gitea",
	    .text = "{" REF "," AFTER
		    ",\"repository\":{\"full_name\":\"owner/name\"}}",
	    .branch = "main",
	    .hash = HASH,
	    .path = "owner/name" },
	{ .name = "the largest id",
	    .kind = "gitea",
	    .text = "{" REF "," AFTER ",\"repository\":{"
		    "\"id\":9007199254740991,\"full_name\":\"owner/name\"}}",
	    .branch = "main",
	    .hash = HASH,
	    .id = "9007199254740991",
	    .path = "owner/name" },
	{ .name = "a larger id is ignored, not rounded",
	    .kind = "gitea",
	    .text = "{" REF "," AFTER ",\"repository\":{"
		    "\"id\":9007199254740993,\"full_name\":\"owner/name\"}}",
	    .branch = "main",
	    .hash = HASH,
	    .path = "owner/name" },
	{ .name = "a fraction as id is ignored",
	    .kind = "gitea",
	    .text = "{" REF "," AFTER ",\"repository\":{"
		    "\"id\":41.5,\"full_name\":\"owner/name\"}}",
	    .branch = "main",
	    .hash = HASH,
	    .path = "owner/name" },
	/* --- rejected */
	{ .name = "nothing", .kind = "gitea", .text = "" },
	{ .name = "no JSON", .kind = "gitea", .text = "payload=%7B%7D" },
	{ .name = "no object", .kind = "gitea", .text = "[" GOOD "]" },
	{ .name = "null", .kind = "gitlab", .text = "null" },
	{ .name = "an empty object", .kind = "gitea", .text = "{}" },
	{ .name = "more behind it", .kind = "gitea", .text = GOOD "x" },
	{ .name = "no ref", .kind = "gitea", .text = "{" AFTER "," REPO "}" },
	{ .name = "no commit", .kind = "gitea", .text = "{" REF "," REPO "}" },
	{ .name = "no repository",
	    .kind = "gitea",
	    .text = "{" REF "," AFTER "}" },
	{ .name = "the body of GitLab from GitHub",
	    .kind = "github",
	    .text = "{" REF "," AFTER "," PROJECT "}" },
	{ .name = "Gitea's body from GitLab", .kind = "gitlab", .text = GOOD },
	{ .name = "a duplicate member",
	    .kind = "gitea",
	    .text = "{" REF "," AFTER "," REF "," REPO "}" },
	{ .name = "U+0000 in a name",
	    .kind = "gitea",
	    .text = "{\"ref\":\"refs/heads/a\\u0000b\"," AFTER "," REPO "}" },
	{ .name = "half a surrogate pair",
	    .kind = "gitea",
	    .text = "{\"ref\":\"refs/heads/\\ud83d\"," AFTER "," REPO "}" },
	{ .name = "invalid UTF-8",
	    .kind = "gitea",
	    .text = "{\"ref\":\"refs/heads/\xff\"," AFTER "," REPO "}" },
	{ .name = "an empty branch",
	    .kind = "gitea",
	    .text = "{\"ref\":\"refs/heads/\"," AFTER "," REPO "}" },
	{ .name = "a newline in a branch",
	    .kind = "gitea",
	    .text = "{\"ref\":\"refs/heads/a\\nb\"," AFTER "," REPO "}" },
	{ .name = "DEL in a branch",
	    .kind = "gitea",
	    .text = "{\"ref\":\"refs/heads/a\\u007f\"," AFTER "," REPO "}" },
	{ .name = "a ref of another type",
	    .kind = "gitea",
	    .text = "{\"ref\":[\"refs/heads/main\"]," AFTER "," REPO "}" },
	{ .name = "a ref that is null",
	    .kind = "gitea",
	    .text = "{\"ref\":null," AFTER "," REPO "}" },
	{ .name = "a commit in upper case",
	    .kind = "gitea",
	    .text =
		"{" REF
		",\"after\":\"00112233445566778899AABBCCDDEEFF00112233\"," REPO
		"}" },
	{ .name = "a short commit",
	    .kind = "gitea",
	    .text = "{" REF ",\"after\":\"0011223\"," REPO "}" },
	{ .name = "a commit of 41 digits",
	    .kind = "gitea",
	    .text = "{" REF ",\"after\":\"" HASH "0\"," REPO "}" },
	{ .name = "a commit of 65 digits",
	    .kind = "gitea",
	    .text = "{" REF ",\"after\":\"" LONG_HASH "0\"," REPO "}" },
	{ .name = "an empty commit",
	    .kind = "gitea",
	    .text = "{" REF ",\"after\":\"\"," REPO "}" },
	{ .name = "a commit that is an option",
	    .kind = "gitea",
	    .text =
		"{" REF
		",\"after\":\"--upload-pack=touch /tmp/x-------------\"," REPO
		"}" },
	{ .name = "a commit that is a number",
	    .kind = "gitea",
	    .text = "{" REF ",\"after\":1," REPO "}" },
	{ .name = "a repository of another type",
	    .kind = "gitea",
	    .text = "{" REF "," AFTER ",\"repository\":\"owner/name\"}" },
	{ .name = "an empty path",
	    .kind = "gitea",
	    .text = "{" REF "," AFTER ",\"repository\":{\"full_name\":\"\"}}" },
	{ .name = "a control byte in the path",
	    .kind = "gitea",
	    .text = "{" REF "," AFTER
		    ",\"repository\":{\"full_name\":\"a/b\\r\\nc\"}}" },
	{ .name = "an invalid id",
	    .kind = "gitea",
	    .text =
		"{" REF "," AFTER
		",\"repository\":{\"id\":\"1 OR 1\",\"full_name\":\"a/b\"}}" },
	{ .name = "an empty id",
	    .kind = "gitea",
	    .text = "{" REF "," AFTER
		    ",\"repository\":{\"id\":\"\",\"full_name\":\"a/b\"}}" },
	{ .name = "a negative id",
	    .kind = "gitea",
	    .text = "{" REF "," AFTER
		    ",\"repository\":{\"id\":-1,\"full_name\":\"a/b\"}}" },
};

static const struct err *
read_as(const char *kind, const char *text, size_t len, struct hook_push *out)
{
	const struct hook_envelope env = { .kind = kind, .push = true };
	/* Of the exact length, so that a sanitizer notices an overrun. */
	char *copy = mem_alloc(len + (len == 0), 1);
	const struct err *e;

	if (len > 0)
		(void)memcpy(copy, text, len);
	e = hook_push_read(a, &env, copy, len, out);
	mem_free(copy);
	return e;
}

static void
body_run(const struct body *b)
{
	const struct err *e;
	struct hook_push got;

	e = read_as(b->kind, b->text, strlen(b->text), &got);
	if (b->path == NULL) {
		ok(e != NULL && e->code == ERR_BAD_REQUEST &&
			str_starts(e->detail, "The "),
		    "rejected: %s", b->name);
		return;
	}
	if (!ok(e == NULL, "%s", b->name)) {
		(void)printf("# %s\n", e->detail);
		return;
	}
	is_str(got.branch, b->branch, "... has its branch");
	is_str(got.commit_hash, b->hash, "... has its commit");
	is_str(got.commit_message, b->message, "... has the commit message");
	is_str(got.repo_id, b->id, "... has the id of the repository");
	is_str(got.repo_path, b->path, "... has the path of the repository");
	is_str(got.pusher, b->pusher, "... has the pusher");
	is_int(got.deleted, b->deleted, "... is a deletion or not");
}

/* Replaces the %s in `form` by `n` times `unit`. */
static const struct err *
read_long(const char *form, const char *unit, size_t n, struct hook_push *out)
{
	const char *mark = strstr(form, "%s");
	size_t i, len = strlen(unit);
	const struct err *e;
	struct buf b;

	buf_init(&b, (size_t)4 << 20);
	buf_add(&b, form, (size_t)(mark - form));
	for (i = 0; i < n; i++)
		buf_add(&b, unit, len);
	buf_puts(&b, mark + 2);
	e = read_as("gitea", b.data, b.len, out);
	buf_release(&b);
	return e;
}

static void
lengths_run(void)
{
	static const char ref[] = "{\"ref\":\"refs/heads/%s\"," AFTER "," REPO
				  "}";
	static const char path[] = "{" REF "," AFTER
				   ",\"repository\":{\"full_name\":\"%s\"}}";
	static const char message[] = "{" REF "," AFTER
				      ",\"head_commit\":{\"id\":\"" HASH
				      "\",\"message\":\"%s\"}," REPO "}";
	static const char id[] = "{" REF "," AFTER ",\"repository\":{\"id\":"
				 "\"%s\",\"full_name\":\"a/b\"}}";
	static const char more[] = "{" REF "," AFTER ",\"x\":[%s0]," REPO "}";
	static const char no_list[] = "{" REF "," AFTER "," PROJECT
				      ",\"commits\":{}}";
	static const char no_objects[] = "{" REF "," AFTER "," PROJECT
					 ",\"commits\":[1]}";
	struct hook_push got;

	ok(read_long(ref, "\xc3\xa4", 255, &got) == NULL &&
		str_chars(got.branch) == 255,
	    "a branch of 255 characters is accepted");
	ok(read_long(ref, "\xc3\xa4", 256, &got) != NULL,
	    "a branch of 256 characters is rejected");
	ok(read_long(path, "x", 1000, &got) == NULL,
	    "a path of 1000 bytes is accepted");
	ok(read_long(path, "x", 1001, &got) != NULL,
	    "a path of 1001 bytes is rejected");
	ok(read_long(id, "9", 20, &got) == NULL,
	    "an id of 20 digits is accepted");
	ok(read_long(id, "9", 21, &got) != NULL,
	    "an id of 21 digits is rejected");
	ok(read_long(message, "\xe2\x82\xac", 10000, &got) == NULL &&
		strlen(got.commit_message) == 16383 &&
		utf8_valid(got.commit_message, 16383),
	    "a message is truncated between characters");
	ok(read_long(more, "0,", 40000, &got) == NULL,
	    "40,000 values are accepted");
	arena_clear(a);
	ok(read_as("gitlab", no_list, strlen(no_list), &got) == NULL &&
		got.commit_message == NULL,
	    "commits that are not an array lose only the message");
	ok(read_as("gitlab", no_objects, strlen(no_objects), &got) == NULL &&
		got.commit_message == NULL,
	    "commits that are not objects lose only the message");
	arena_clear(a);
	ok(read_long(more, "0,", 200000, &got) == NULL,
	    "200,000 commits lose only the message");
}

/* A truncated event is rejected wherever it is cut. */
static void
cuts_run(void)
{
	const char *text = bodies[2].text;
	struct hook_push got;
	size_t i, taken = 0;

	for (i = 0; i < strlen(text); i++) {
		arena_clear(a);
		taken += read_as("gitlab", text, i, &got) == NULL;
	}
	is_int((long long)taken, 0, "a truncated body is rejected");
}

/* An array of 1 MiB with many members, in an arena like a worker's. */
static void
memory_run(void)
{
	static const char one[] = "{\"id\":\"x\",\"message\":\"y\"},";
	const struct hook_envelope env = { .kind = "gitlab" };
	struct arena *small = arena_open((size_t)640 << 10);
	struct hook_push got;
	const struct err *e;
	struct buf b;
	size_t i;

	buf_init(&b, (size_t)1 << 20);
	buf_puts(&b, "{" REF "," AFTER "," PROJECT ",\"commits\":[");
	for (i = 0; i < 16000; i++)
		buf_puts(&b, one);
	buf_puts(&b, "{}]}");
	e = hook_push_read(small, &env, b.data, b.len, &got);
	ok(e == NULL && got.commit_message == NULL,
	    "commits that do not fit are left out, and the push is accepted");
	buf_release(&b);
	arena_close(small);
}

int
main(void)
{
	size_t i;

	a = arena_open((size_t)32 << 20);
	for (i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
		arena_clear(a);
		body_run(&bodies[i]);
	}
	lengths_run();
	cuts_run();
	memory_run();
	arena_close(a);
	return tap_done();
}
