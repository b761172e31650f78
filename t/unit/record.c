/* SPDX-License-Identifier: ISC */
#include "core/buf.h"
#include "spool/event.h"
#include "spool/spool.h"
#include "tap.h"

static struct arena *a;

/* Reads all of `text`; the number of records, or -1 if it is malformed. */
static int
count(const char *text, size_t len)
{
	struct record r;
	size_t at = 0;
	bool found;
	int n = 0;

	for (;;) {
		if (record_read(a, text, len, &at, &r, &found) != NULL)
			return -1;
		if (!found)
			return n;
		n++;
	}
}

static void
round_trip(void)
{
	struct record r;
	struct buf b;
	size_t at = 0, cut;
	bool found;

	buf_init(&b, 4 * SPOOL_RECORD);
	record_write(&b, "step-script", "echo 1\n\necho 2\n", 15);
	record_printf(&b, "epoch", "%d", 7);
	record_write(&b, "env", "", 0);
	is_int(count(b.data, b.len), 3, "three records are read back");
	ok(record_read(a, b.data, b.len, &at, &r, &found) == NULL && found,
	    "the first record is read");
	is_str(r.name, "step-script", "a record has its name");
	is_str(r.value, "echo 1\n\necho 2\n",
	    "a record has its value with newlines");
	is_int((long long)r.len, 15, "a record has its length");
	for (cut = 0; cut < b.len; cut++)
		if (count(b.data, cut) < 0 || count(b.data, cut) > 2)
			break;
	is_int((long long)cut, (long long)b.len,
	    "a truncated record is incomplete, not malformed");
	buf_release(&b);
}

static void
limits(void)
{
	static char big[SPOOL_RECORD + 1];
	struct buf b;

	(void)memset(big, 'x', sizeof(big));
	buf_init(&b, 4 * SPOOL_RECORD);
	record_write(&b, "log", big, SPOOL_RECORD);
	ok(buf_check(&b) == NULL, "the largest record is written");
	is_int(count(b.data, b.len), 1, "the largest record is read");
	record_write(&b, "log", big, SPOOL_RECORD + 1);
	ok(buf_check(&b) != NULL, "a larger record is rejected");
	buf_release(&b);
	buf_init(&b, 4 * SPOOL_RECORD);
	record_printf(&b, "log", "%.*s", (int)sizeof(big), big);
	ok(buf_check(&b) != NULL, "a larger formatted record is rejected");
	buf_release(&b);
}

/* Reads a record of that name and value. */
static const struct err *
event_read(const char *name, const char *value, struct job_event *out)
{
	const struct record r = { .name = name,
		.value = value,
		.len = strlen(value) };

	return job_event_read(a, &r, out);
}

/* The texts are those that released versions write and read. */
static const struct {
	const char *text;
	struct job_event event;
} event_texts[] = {
	{ "checked-out 11\nmain\nab\nc\nd\n",
	    { .kind = JOB_CHECKED_OUT,
		.branch = "main",
		.hash = "ab",
		.message = "c\nd" } },
	{ "checked-out 6\n-\nab\nc\n",
	    { .kind = JOB_CHECKED_OUT, .hash = "ab", .message = "c" } },
	{ "stayed 5\n\nab\nc\n",
	    { .kind = JOB_STAYED,
		.branch = "",
		.hash = "ab",
		.message = "c" } },
	{ "commits 18\nmain\ncommit 3\na b\n\n",
	    { .kind = JOB_COMMITS,
		.branch = "main",
		.text = "commit 3\na b\n" } },
	{ "step-started 5\n0 7 9\n",
	    { .kind = JOB_STEP_STARTED, .time = { 7 }, .log = { 9, true } } },
	{ "step-ended 16\n2 failed 1 - 8 4\n",
	    { .kind = JOB_STEP_ENDED,
		.position = 2,
		.status = "failed",
		.exit_code = { 1, true },
		.time = { 8 },
		.log = { 4, true } } },
	{ "step-skipped 1\n3\n", { .kind = JOB_STEP_SKIPPED, .position = 3 } },
	{ "objects 3\na b\n", { .kind = JOB_OBJECTS, .text = "a b" } },
	{ "workspace 9\nready 0 5\n",
	    { .kind = JOB_WORKSPACE,
		.status = "ready",
		.dirty = { 0, true },
		.size = 5 } },
	{ "workspace 9\nerror - 5\n",
	    { .kind = JOB_WORKSPACE, .status = "error", .size = 5 } },
	{ "achieved 10\n1 clean up\n",
	    { .kind = JOB_ACHIEVED, .position = 1, .text = "clean up" } },
	{ "warnings 1\n2\n", { .kind = JOB_WARNINGS, .size = 2 } },
	{ "git-away 4\nno x\n", { .kind = JOB_GIT_AWAY, .text = "no x" } },
	{ "no-room 4\nfull\n", { .kind = JOB_NO_ROOM, .text = "full" } },
	{ "end 12\nsuccess - 6\n\n",
	    { .kind = JOB_ENDED, .status = "success", .time = { 6 } } },
	{ "end 20\nfailed step 6\nIt is.\n",
	    { .kind = JOB_ENDED,
		.status = "failed",
		.reason = "step",
		.time = { 6 },
		.text = "It is." } },
};

static void
events(void)
{
	struct job_event event;
	struct buf first, again;
	struct record r;
	size_t at, i;
	bool found;

	buf_init(&first, 4 * SPOOL_RECORD);
	buf_init(&again, 4 * SPOOL_RECORD);
	for (i = 0; i < sizeof(event_texts) / sizeof(event_texts[0]); i++) {
		buf_clear(&first);
		buf_clear(&again);
		at = 0;
		job_event_write(&first, &event_texts[i].event);
		ok(strcmp(first.data, event_texts[i].text) == 0,
		    "event %zu has its text", i);
		if (record_read(a, first.data, first.len, &at, &r, &found) !=
			NULL ||
		    !found || job_event_read(a, &r, &event) != NULL)
			event.kind = JOB_STAYED;
		else
			job_event_write(&again, &event);
		ok(again.data != NULL &&
			strcmp(again.data, event_texts[i].text) == 0,
		    "event %zu is read", i);
	}
	buf_release(&first);
	buf_release(&again);
}

static void
bad_events(void)
{
	static const char *const bad[][2] = {
		{ "checked-out", "main" },
		{ "step-started", "" },
		{ "step-started", "0 7" },
		{ "step-started", "0 7 9 1" },
		{ "step-started", "0 -7 9" },
		{ "step-ended", "0 failed 1 - 8" },
		{ "step-skipped", "x" },
		{ "workspace", "ready 0" },
		{ "workspace", "ready 0 5x" },
		{ "warnings", "" },
		{ "end", "success -" },
		{ "end", "success - x\n" },
	};
	struct job_event event;
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ok(event_read(bad[i][0], bad[i][1], &event) != NULL,
		    "malformed event %zu is rejected", i);
	ok(event_read("something", "", &event) == NULL &&
		event.kind == JOB_EVENT__MAX,
	    "an unknown event is read as unknown");
	ok(event_read("checked-out", "main\nab", &event) == NULL &&
		event.message[0] == '\0',
	    "the last text may be missing");
}

int
main(void)
{
	static const char *const bad[] = { " 1\nx\n", "Env 1\nx\n", "env\nx\n",
		"env 01\nx\n", "env -1\nx\n", "env 1 \nx\n", "env 1\nxy",
		"env 1048577\nx\n", "env 99999999999999\nx\n", "\n",
		"env 2\nxyz\n", "e_v 1\nx\n",
		"an-endless-name-that-is-never-a-record 1\nx\n",
		"something that goes on and on without any newline at all" };
	static const char nul[] = "env 3\na\0b\n", head[] = "e\0v 1\nx\n";
	size_t i;

	a = arena_open((size_t)1 << 26);
	round_trip();
	limits();
	events();
	bad_events();
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ok(count(bad[i], strlen(bad[i])) == -1,
		    "malformed record %zu is rejected", i);
	is_int(count(nul, sizeof(nul) - 1), -1,
	    "a record with a NUL in its value is malformed");
	is_int(count(head, sizeof(head) - 1), -1,
	    "a record with a NUL in its head is malformed");
	is_int(count("", 0), 0, "an empty text has no record");
	arena_close(a);
	return tap_done();
}
