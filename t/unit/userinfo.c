/* SPDX-License-Identifier: ISC */
/* URLs in a stream, in pieces of any size. */
#include "job/userinfo.h"

#include "tap.h"

static const char *const rows[][2] = {
	{ "Submodule 'a' (https://ann:pw@h/p) registered\n",
	    "Submodule 'a' (https://***@h/p) registered\n" },
	{ "clone of 'https://token@h:80/p' into",
	    "clone of 'https://***@h:80/p' into" },
	{ "https://a:p@w@h/p", "https://***@***@h/p" },
	{ "https://ann:it's@h", "https://***@h" },
	{ "HTTP://:pw@h HTTP://:pw@h", "HTTP://***@h HTTP://***@h" },
	{ "ssh://git@h/p ssh://git:pw@h/p", "ssh://git@h/p ssh://***@h/p" },
	{ "https://h/p@1 a@b https://h?a@b",
	    "https://h/p@1 a@b https://h?a@b" },
	{ "https://https://a:pw@h", "https://https://***@h" },
	{ "git@h:p file:///a@b :// @", "git@h:p file:///a@b :// @" },
	{ "https://h\na@b", "https://h\na@b" },
	{ "https://held", "https://held" },
};

static void
row(const char *text, const char *want, size_t piece)
{
	struct userinfo u = { .len = 0 };
	size_t len = strlen(text), n;
	struct buf out;

	buf_init(&out, 4096);
	for (; len > 0; text += n, len -= n) {
		n = len < piece ? len : piece;
		userinfo_feed(&u, text, n, &out);
	}
	userinfo_finish(&u, &out);
	is_str(out.data, want, "a stream without users of URLs");
	buf_release(&out);
}

static void
long_one(void)
{
	static char text[3 * USERINFO_MAX];
	struct userinfo u = { .len = 0 };
	struct buf out;

	(void)memset(text, 'x', sizeof(text));
	(void)memcpy(text, "https://", 8);
	buf_init(&out, sizeof(text));
	userinfo_feed(&u, text, sizeof(text), &out);
	userinfo_finish(&u, &out);
	ok(out.len == sizeof(text) && memcmp(out.data, text, out.len) == 0,
	    "a text without an end passes");
	buf_release(&out);
}

int
main(void)
{
	size_t i, piece;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (piece = 1; piece < 100; piece = piece * 3 + 1)
			row(rows[i][0], rows[i][1], piece);
	long_one();
	return tap_done();
}
