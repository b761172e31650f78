/* SPDX-License-Identifier: ISC */
#include "core/buf.h"
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
