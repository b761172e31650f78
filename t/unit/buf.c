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
	ok(b.data == NULL && b.len == 0, "a new buffer has no memory");
	buf_puts(&b, "ab");
	buf_putc(&b, 'c');
	buf_printf(&b, "%03d", 7);
	buf_add(&b, "x\0y", 3);
	is_str(b.data, "abc007x", "text is appended");
	is_int((long long)b.len, 9, "NUL bytes count");
	buf_add(&b, NULL, 0);
	is_int((long long)b.len, 9, "an empty text appends nothing");
	buf_drop(&b, 3);
	is_str(b.data, "007x", "buf_drop removes bytes at the front");
	buf_drop(&b, 0);
	buf_drop(&b, b.len);
	is_str(b.data, "", "buf_drop removes everything");
	buf_number(&b, 0);
	buf_putc(&b, ' ');
	buf_number(&b, -70);
	buf_putc(&b, ' ');
	buf_number(&b, INT64_MAX);
	buf_putc(&b, ' ');
	buf_number(&b, INT64_MIN);
	is_str(b.data, "0 -70 9223372036854775807 -9223372036854775808",
	    "numbers are written in decimal digits");
	buf_clear(&b);
	for (i = 0; i < 10000; i++)
		buf_printf(&b, "%zu,", i);
	is_int((long long)b.len, 48890, "a buffer grows as needed");
	ok(buf_check(&b) == NULL, "a buffer that grew has no error");
	buf_clear(&b);
	ok(b.len == 0 && b.data[0] == '\0', "a cleared buffer is empty");
	buf_release(&b);
	buf_puts(&b, "again");
	is_str(b.data, "again", "a released buffer can be used again");
	buf_release(&b);
}

static void
stops(void)
{
	struct buf b;
	const struct err *e;

	buf_init(&b, 4);
	buf_puts(&b, "abcd");
	ok(buf_check(&b) == NULL, "a buffer can hold its maximum");
	buf_putc(&b, 'e');
	e = buf_check(&b);
	ok(e != NULL && e->code == ERR_TOO_LARGE,
	    "one byte above the maximum is an error");
	is_str(b.data, "abcd", "an error leaves the content unchanged");
	is_int((long long)b.cap, 5,
	    "a buffer allocates no more than its maximum");
	buf_drop(&b, 4);
	buf_puts(&b, "x");
	ok(buf_check(&b) != NULL && b.len == 0,
	    "after an error nothing is appended");
	buf_clear(&b);
	buf_printf(&b, "%s", "12345");
	ok(buf_check(&b) != NULL && b.len == 0 && b.data[0] == '\0',
	    "formatted text is appended whole or not at all");
	buf_clear(&b);
	buf_add(&b, "x", (size_t)-1 / 2);
	ok(buf_check(&b) != NULL, "an impossible length is an error");
	buf_release(&b);
	buf_init(&b, 0);
	buf_puts(&b, "");
	ok(buf_check(&b) == NULL, "an empty text fits a maximum of 0");
	buf_putc(&b, 'x');
	ok(buf_check(&b) != NULL, "a byte does not fit a maximum of 0");
	buf_release(&b);
}

int
main(void)
{
	grows();
	stops();
	return tap_done();
}
