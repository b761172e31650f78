/* SPDX-License-Identifier: ISC */
/* What of a log reaches a terminal. */
#include "cli/screen.h"

#include "tap.h"

#define N(table) (sizeof(table) / sizeof((table)[0]))

static const struct {
	const char *log, *shown, *name;
} rows[] = {
	{ "a\tb\r\n\xc3\xa9\xe6\x9b\xb2", "a\tb\r\n\xc3\xa9\xe6\x9b\xb2",
	    "plain text" },
	{ "\033[1;31mred\033[0m\033[K", "\033[1;31mred\033[0m\033[K\033[m",
	    "colors and the erasing of a line" },
	{ "a\033]0;title\ab\033]8;;x\033\\c", "abc", "command strings" },
	{ "a\033P1b\033\\c\033Xd\033\\e\033^f\033\\g\033_h\033\\i", "acegi",
	    "DCS, SOS, PM and APC" },
	{ "a\033]0;hidden\nlater\n", "a\nlater\n", "OSC without an end" },
	{ "a\033Phidden\nlater\n", "a\nlater\n", "DCS without an end" },
	{ "a\033_hidden\nlater\n", "a\nlater\n", "APC without an end" },
	{ "a\033^hidden\nlater\n", "a\nlater\n", "PM without an end" },
	{ "a\033Xhidden\nlater\n", "a\nlater\n", "SOS without an end" },
	{ "a\xc2\x9dhidden\nlater\n", "a\nlater\n", "a C1 OSC without an end" },
	{ "a\xc2\x90hidden\nlater\n", "a\nlater\n", "a C1 DCS without an end" },
	{ "a\xc2\x9d"
	  "0;x\xc2\x9c"
	  "b\xc2\x9d"
	  "0;x\a"
	  "c\033]0;x\xc2\x9c"
	  "d",
	    "abcd", "C1 strings with an end" },
	{ "a\033]0;x\xc2\nb", "a\nb",
	    "a string that ends in half a character" },
	{ "a\033]0;x\030b\033]0;x\032c", "abc", "CAN and SUB in strings" },
	{ "a\033]0;x\033[32mb", "a\033[32mb\033[m", "a sequence in a string" },
	{ "a\033]0;x\033]0;y\033\\b", "ab", "a string in a string" },
	{ "a\033[31\nb\033[0;0\033[1mc", "a\nb\033[1mc\033[m",
	    "CSI without an end" },
	{ "a\033\nb\033", "a\nb", "ESC alone" },
	{ "a\033[\xc3\xa9m", "a\xc3\xa9m", "CSI before another character" },
	{ "a\xc2\x9b"
	  "31mb\xc2\x9b"
	  "2Jc",
	    "a\033[31mbc\033[m", "C1 CSI" },
	{ "a\x9b"
	  "31mb\x9d"
	  "0;c",
	    "a31mb0;c", "C1 bytes that are not UTF-8" },
	{ "\xe6\x9b\xb2\x9b\xe6\x9b"
	  "a\xf0\x9f\x9b\x92\x9b",
	    "\xe6\x9b\xb2\xe6\x9b"
	    "a\xf0\x9f\x9b\x92",
	    "C1 bytes after characters that contain them" },
	{ "a\033(Bb\033 Fc\0337d\033cd", "abcdd", "other escape sequences" },
	{ "\033[8mhidden", "hidden", "concealed text" },
	{ "\033[0;08;1mhidden", "hidden", "concealed text among others" },
	{ "\033[38;5;8ma\033[48;2;8;8;8mb\033[38:5:8mc",
	    "\033[38;5;8ma\033[48;2;8;8;8mb\033[38:5:8mc\033[m",
	    "colors whose numbers look alike" },
	{ "\033[38;5;1;8mhidden", "hidden", "concealed text after a color" },
	{ "\033[?25l\033[2J\033[5;5H\033[6n\033[>c\033[1$mx", "x",
	    "sequences that move and query" },
	{ "\033[11111111111111111111111111111111111111mx", "x",
	    "a sequence that is too long" },
};

int
main(void)
{
	struct screen whole, bytes;
	struct buf one, other;
	size_t i, k, len;

	for (i = 0; i < N(rows); i++) {
		whole = bytes = (struct screen){ .len = 0 };
		buf_init(&one, 1000);
		buf_init(&other, 1000);
		len = strlen(rows[i].log);
		screen_add(&whole, rows[i].log, len, &one);
		for (k = 0; k < len; k++)
			screen_add(&bytes, rows[i].log + k, 1, &other);
		screen_end(&whole, &one);
		screen_end(&bytes, &other);
		buf_putc(&one, '\0');
		buf_putc(&other, '\0');
		is_str(one.data, rows[i].shown, rows[i].name);
		ok(strcmp(one.data, other.data) == 0, "%s, byte by byte",
		    rows[i].name);
		buf_release(&one);
		buf_release(&other);
	}
	return tap_done();
}
