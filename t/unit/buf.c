/* SPDX-License-Identifier: ISC */
#include "core/buf.h"

#include <string.h>

#include "tap.h"

static void
grows(void)
{
	struct buf b;
	size_t i;

	buf_init(&b, 100000);
	ok(b.data == NULL && b.len == 0, "a new buffer takes no memory");
	buf_puts(&b, "ab");
	buf_putc(&b, 'c');
	buf_printf(&b, "%03d", 7);
	buf_add(&b, "x\0y", 3);
	is_str(b.data, "abc007x", "pieces stand one behind the other");
	is_int((long long)b.len, 9, "NUL bytes count");
	buf_add(&b, NULL, 0);
	is_int((long long)b.len, 9, "nothing adds nothing");
	buf_drop(&b, 3);
	is_str(b.data, "007x", "the front can be dropped");
	buf_drop(&b, 0);
	buf_drop(&b, b.len);
	is_str(b.data, "", "all of it, too");
	for (i = 0; i < 10000; i++)
		buf_printf(&b, "%zu,", i);
	is_int((long long)b.len, 48890, "it grows as needed");
	ok(buf_check(&b) == NULL, "all fitted");
	buf_clear(&b);
	ok(b.len == 0 && b.data[0] == '\0', "cleared, it is empty");
	buf_release(&b);
	buf_puts(&b, "again");
	is_str(b.data, "again", "released, it may be used again");
	buf_release(&b);
}

static void
stops(void)
{
	struct buf b;
	const struct err *e;

	buf_init(&b, 4);
	buf_puts(&b, "abcd");
	ok(buf_check(&b) == NULL, "the maximum fits");
	buf_putc(&b, 'e');
	e = buf_check(&b);
	ok(e != NULL && e->code == ERR_TOO_LARGE, "one more does not");
	is_str(b.data, "abcd", "and leaves what was there");
	is_int((long long)b.cap, 5, "no more memory is taken than for those");
	buf_drop(&b, 4);
	buf_puts(&b, "x");
	ok(buf_check(&b) != NULL && b.len == 0, "it fails for good");
	buf_clear(&b);
	buf_printf(&b, "%s", "12345");
	ok(buf_check(&b) != NULL && b.len == 0,
	    "formatted text is never cut in half");
	buf_clear(&b);
	buf_add(&b, "x", (size_t)-1 / 2);
	ok(buf_check(&b) != NULL, "an impossible length is refused");
	buf_release(&b);
	buf_init(&b, 0);
	buf_puts(&b, "");
	ok(buf_check(&b) == NULL, "nothing fits into nothing");
	buf_putc(&b, 'x');
	ok(buf_check(&b) != NULL, "something does not");
	buf_release(&b);
}

int
main(void)
{
	grows();
	stops();
	return tap_done();
}
