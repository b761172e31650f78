/* SPDX-License-Identifier: ISC */
#include "job/mask.h"

#include <stdint.h>
#include <stdlib.h>

#include <bsd/string.h>

#include "tap.h"

static struct arena *a;

/* The secret and the text at once. */
static const char *
masked(struct mask *m, const char *text, size_t len)
{
	static struct buf out = { .max = (size_t)1 << 22 };

	buf_clear(&out);
	mask_feed(m, text, len, &out);
	mask_finish(m, &out);
	return out.data == NULL ? "" : out.data;
}

static void
one(const char *secret, const char *text, const char *want, const char *name)
{
	struct mask *m = mask_open(a);

	mask_add(m, secret, strlen(secret));
	is_str(masked(m, text, strlen(text)), want, name);
	mask_close(m);
}

static void
forms(void)
{
	one("hunter22", "it is hunter22.", "it is ***.", "in a line");
	one("hunter22", "hunter22", "***", "alone");
	one("hunter22", "hunter2hunter22", "hunter2***",
	    "after a partial match");
	one("hunter22", "hunter22hunter22", "******", "twice");
	one("hunter22", "hunter2", "hunter2", "a part of it");
	one("hunter22", "Hunter22", "Hunter22", "in another case");
	one("abc", "abc", "abc", "too short to be masked");
	one("abcd", "abcd", "***", "just long enough");
	one("aaaa", "aaaaaaaaa", "***", "overlapping itself");
	one("$.*[x", "$.*[x", "***", "with characters of a pattern");
	one("s3cret!/", "p=s3cret%21%2F", "p=***", "in a URL");
	one("s3cret!/", "p=s3cret%21%2f", "p=***", "in a URL in lower case");
	one("a b+c d", "q=a+b%2Bc+d", "q=***", "in a form");
	one("say \"hi\"", "{\"x\":\"say \\\"hi\\\"\"}", "{\"x\":\"***\"}",
	    "in JSON");
	one("it's me", "'it'\\''s me'", "'***'", "in a shell's quotes");
	one("hunter22", "aHVudGVyMjI=", "***", "in base64");
	one("hunter22",
	    "eDpodW50ZXIyMg==", "eDp***g==", "in base64 after two other bytes");
	one("hunter22",
	    "eGh1bnRlcjIyCg==", "eG***Cg==", "in base64 after one other byte");
	one("\xff\xfe\xfd\xfc", "__79_A", "***", "in base64url");
	one("first line\nline two\n", "x line two y", "x *** y",
	    "each line of a secret is masked");
	one("first line\r\nline two", "first line\n", "***\n",
	    "a line without its carriage return is masked");
	one("one\ntwo\nab\nlong line", "one two ab\n", "one two ab\n",
	    "a line that is too short is not masked");
	one("one\ntwo\n  ab\nxyz", "(one two ab xyz)", "(***)",
	    "lines that a shell joins by blanks are masked");
	one("one\r\ntwo\r\nab", "(onetwoab)", "(***)",
	    "lines that are joined without blanks are masked");
	one(" correct  horse ", "(correct horse)", "(***)",
	    "words that a shell joins are masked without blanks at the ends");
	one("p@ss w;rd$1", "(p@ss%20w;rd$1 p%40ss%20w%3Brd$1)", "(*** ***)",
	    "a URL, and the password in one, are masked");
	one("p\u00e4ss+w\"rt",
	    "(p\\u00E4ss+w\\\"rt p\\u00E4ss\\u002Bw\\u0022rt)", "(*** ***)",
	    "JSON with escapes in upper case is masked");
	one("hunter22", "\xff\xc3hunter22\x80", "\xff\xc3***\x80",
	    "between invalid UTF-8");
}

/* The secret in the output of tools; `text` is what they print. */
static const struct {
	const char *by, *secret, *text, *want;
} quoted[] = {
	{ "printf %q", "it's $5 & more!", "it\\'s\\ \\$5\\ \\&\\ more\\!",
	    "***" },
	{ "bash -x", "it's $5 \\more", "+ echo 'it'\\''s $5 \\more'",
	    "+ echo '***'" },
	{ "bash -x, several lines", "two'\nlin\\es",
	    "+ echo $'two\\'\\nlin\\\\es'", "+ echo $'***'" },
	{ "declare -p", "a\"b$c`d\\e", "declare -x S=\"a\\\"b\\$c\\`d\\\\e\"",
	    "declare -x S=\"***\"" },
	{ "shlex.quote()", "it's me", "'it'\"'\"'s me'", "'***'" },
	{ "json.dumps()", "a\"b\\c\td\x01", "[\"a\\\"b\\\\c\\td\\u0001\"]",
	    "[\"***\"]" },
	{ "json_encode()", "https://u:p@h", "\"https:\\/\\/u:p@h\"",
	    "\"***\"" },
	{ "jq -r @uri", "a b/c+d=", "a%20b%2Fc%2Bd%3D", "***" },
	{ "encodeURIComponent()", "(a b)*'c'!", "(a%20b)*'c'!", "***" },
	{ "a form", "a~b c*d", "x=a%7Eb+c*d&", "x=***&" },
	{ "a query", "a~b c*d", "x=a~b+c%2Ad&", "x=***&" },
	{ "a path", "a/b c:d", "/a/b%20c%3Ad", "/***" },
	{ "curl", "p\u00e4ss/w", "p%C3%A4ss%2Fw", "***" },
	{ "basic authentication", "hunter22",
	    "dXNlcjpodW50ZXIyMg==", "dXNlcjp***g==" },
	{ "base64", "0123456789", "MDEyMzQ1Njc4OQ==", "***" },
	{ "base64 -w76",
	    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
	    "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWYwMTIzNDU2Nzg5YWJjZGVmMDEyMzQ1Njc4\nOWFiY2RlZg==\n",
	    "***\n***\n" },
	{ "openssl base64",
	    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
	    "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWYwMTIzNDU2Nzg5YWJjZGVm\nMDEyMzQ1Njc4OWFiY2RlZg==\n",
	    "***\n***\n" },
	{ "sed", "first line\nline two", "> first line\n> line two\n",
	    "> ***\n> ***\n" },
	{ "one per line", "abcd\nefgh", "abcd\n\nefgh\n", "***\n\n***\n" },
	{ "colors", "hunter22", "\033[31mhunter22\033[0m",
	    "\033[31m***\033[0m" },
	{ "repr()", "it's\x1b \"a\\", "'it\\'s\\x1b \"a\\\\'", "'***'" },
	{ "repr() in double quotes", "it's\x7f", "\"it's\\x7f\"", "\"***\"" },
	{ "repr() of bytes", "caf\u00e9's", "b\"caf\\xc3\\xa9's\"",
	    "b\"***\"" },
	{ "ascii()", "caf\u00e9 \u20ac \U0001f512",
	    "'caf\\xe9 \\u20ac \\U0001f512'", "'***'" },
	{ "%+q of Go", "caf\u00e9 \U0001f512\a",
	    "\"caf\\u00e9 \\U0001f512\\a\"", "\"***\"" },
	{ "util.inspect()", "it's\x1b", "'it\\'s\\x1B'", "'***'" },
	{ "inspect of Ruby", "a#{b} #c \x1b\x01", "\"a\\#{b} #c \\e\\u0001\"",
	    "\"***\"" },
	{ "{:?} of Rust", "a\"b\x1b", "\"a\\\"b\\u{1b}\"", "\"***\"" },
	{ "addslashes()", "a'b\"c\\d", "a\\'b\\\"c\\\\d", "***" },
	{ "var_export()", "a'b\"c\\d", "'a\\'b\"c\\\\d'", "'***'" },
	{ "SQL", "it's me", "'it''s me'", "'***'" },
	{ "CSV", "say \"hi\"", "\"say \"\"hi\"\"\"", "\"***\"" },
	{ "cat -v", "a\x01\u00e9\tb", "a^AM-CM-)\tb", "***" },
	{ "JSON in JSON", "a\"b\\c",
	    "\"{\\\"t\\\":\\\"a\\\\\\\"b\\\\\\\\c\\\"}\"",
	    "\"{\\\"t\\\":\\\"***\\\"}\"" },
	{ "htmlspecialchars()", "<a&'b'\"c\">",
	    "&lt;a&amp;&#039;b&#039;&quot;c&quot;&gt;", "***" },
	{ "html.escape()", "<a&'b'\"c\">",
	    "&lt;a&amp;&#x27;b&#x27;&quot;c&quot;&gt;", "***" },
	{ "html.escape() without quotes", "<a&'b'\"c\">",
	    "&lt;a&amp;'b'\"c\"&gt;", "***" },
	{ "template.HTMLEscapeString()", "<a&'b'\"c\">",
	    "&lt;a&amp;&#39;b&#39;&#34;c&#34;&gt;", "***" },
	{ "XML", "a&'b'\"c\"", "a&amp;&apos;b&apos;&quot;c&quot;", "***" },
	{ "Mustache", "a/b='c'`", "a&#x2F;b&#x3D;&#39;c&#39;&#x60;", "***" },
	{ "htmlentities()", "caf\u00e9 & \u20ac", "caf&eacute; &amp; \u20ac",
	    "***" },
	{ "xmlcharrefreplace", "caf\u00e9 \u20ac", "caf&#233; &#8364;", "***" },
	{ "hexadecimal references", "caf\u00e9 \u20ac", "caf&#xE9; &#x20AC;",
	    "***" },
	{ "grep --color", "hunter22 it's",
	    "x \033[01;31m\033[Khunt\033[m\033[Ker22 it's y",
	    "x \033[01;31m\033[K*** y" },
	{ "colors of each character", "hunter22",
	    "h\033[1mu\033[38;5;1mn\033(B\033[mt\033[0me\033[1mr\033[0m2\033[1m2!",
	    "***!" },
	{ "colors at the first characters", "a\"bcd",
	    "\"a\033[33m\\\"\033[0mbcd\"", "\"***\"" },
	{ "xxd -R always", "hunter22",
	    "\033[1;32m6875\033[0m \033[1;32m6e74\033[0m\033[1;32m6572\033[0m 3232\n",
	    "\033[1;32m***\n" },
	{ "colors in base64", "0123456789",
	    "MDEyMz\033[1mQ1Njc4\033[0mOQ==", "***" },
	{ "a secret with a sequence", "a\033[1mbc", "(a\033[1mbc)", "(***)" },
	{ "an address", "t0ken-1234", "https://u:t0ken-1234@h/",
	    "https://u:***@h/" },
	/* impossible */
	{ "rev", "hunter22", "22retnuh", "22retnuh" },
	{ "sed s/./& /g", "hunter22", "h u n t e r 2 2", "h u n t e r 2 2" },
};

/* A step may print any number of sequences. */
static void
many_sequences(void)
{
	struct mask *m = mask_open(a);
	struct buf text, out;
	int i;

	buf_init(&text, (size_t)1 << 22);
	buf_init(&out, (size_t)1 << 22);
	mask_add(m, "hunter22", 8);
	buf_puts(&text, "68 hunt");
	for (i = 0; i < 300000; i++)
		buf_puts(&text, "\033[1m");
	buf_puts(&text, "er22!");
	mask_feed(m, text.data, text.len, &out);
	mask_finish(m, &out);
	is_str(out.data, "68 ***!",
	    "any number of sequences may separate two characters");
	buf_release(&text);
	buf_release(&out);
	mask_close(m);
}

static void
quoting(void)
{
	size_t i;

	for (i = 0; i < sizeof(quoted) / sizeof(quoted[0]); i++)
		one(quoted[i].secret, quoted[i].text, quoted[i].want,
		    quoted[i].by);
}

static void
several(void)
{
	struct mask *m = mask_open(a);

	mask_add(m, "abcdef", 6);
	mask_add(m, "abcdefgh", 8);
	mask_add(m, "ghijkl", 6);
	mask_add(m, "efgh", 4);
	is_str(masked(m, "abcdefgh", 8), "***", "the longest secret is masked");
	is_str(masked(m, "abcdefg", 7), "***g", "a shorter secret is masked");
	is_str(masked(m, "abcdefghijkl", 12), "***",
	    "a secret that overlaps another is masked with it");
	is_str(masked(m, "xefghx", 6), "x***x",
	    "a secret inside another is masked");
	mask_close(m);
}

static void
flushing(void)
{
	struct mask *m = mask_open(a);
	struct buf out;

	buf_init(&out, 4096);
	mask_add(m, "password", 8);
	mask_feed(m, "my pass", 7, &out);
	is_str(out.data, "my ", "the possible start of a secret is held back");
	ok(mask_held(m), "mask_held reports that text is held back");
	mask_flush(m, &out);
	is_str(out.data, "my pass", "mask_flush releases a short start");
	ok(!mask_held(m), "after a flush nothing is held back");
	mask_feed(m, "word is", 7, &out);
	is_str(out.data, "my pass*** is",
	    "the rest of a secret is masked after a flush");
	mask_feed(m, "p", 1, &out);
	mask_finish(m, &out);
	is_str(out.data, "my pass*** isp", "mask_end releases the rest");
	buf_clear(&out);
	mask_feed(m, "\n", 1, &out);
	buf_clear(&out);
	mask_add(m, "a much longer one", 17);
	mask_feed(m, "a much ", 7, &out);
	mask_flush(m, &out);
	is_str(out.data, "a much ", "a few bytes are released by a flush");
	mask_feed(m, "longer", 6, &out);
	ok(!mask_held(m), "a longer start is not reported as held back");
	mask_flush(m, &out);
	is_str(out.data, "a much ",
	    "a longer start is not released by a flush");
	mask_feed(m, " one", 4, &out);
	is_str(out.data, "a much ***", "a complete secret is masked");
	mask_feed(m, "a much longer", 13, &out);
	mask_flush(m, &out);
	mask_feed(m, "!", 1, &out);
	is_str(out.data, "a much ***a much longer!",
	    "an incomplete secret is released");
	mask_feed(m, "a much longer o", 15, &out);
	mask_finish(m, &out);
	is_str(out.data, "a much ***a much longer!a much longer o",
	    "mask_end releases an incomplete secret");
	buf_release(&out);
	mask_close(m);
}

static uint32_t
draw(uint32_t n)
{
	static uint32_t state = 12345;

	state = state * UINT32_C(1103515245) + 12345;
	return (state >> 8) % n;
}

/* A text in random pieces is masked like the whole text. */
static void
splits(const char *const *tokens, const char *of_secrets, const char *name)
{
	uint32_t ntokens = 0;
	const uint32_t nsecret = (uint32_t)strlen(of_secrets);
	char text[400], secret[12];
	struct buf out;
	struct mask *m;
	size_t i, at, n, len;
	const int rounds = RANDOM_CASES(3000);
	int round, same = 0, hit = 0;

	while (tokens[ntokens] != NULL)
		ntokens++;
	buf_init(&out, 4096);
	for (round = 0; round < rounds; round++) {
		m = mask_open(a);
		for (n = 1 + draw(4); n > 0; n--) {
			len = 4 + draw(8);
			for (i = 0; i < len; i++)
				secret[i] = of_secrets[draw(nsecret)];
			mask_add(m, secret, len);
		}
		text[0] = '\0';
		for (i = draw(sizeof(text)); i > 0; i--)
			(void)strlcat(text, tokens[draw(ntokens)],
			    sizeof(text));
		len = strlen(text);
		buf_clear(&out);
		for (at = 0; at < len; at += n) {
			n = 1 + draw(9);
			if (n > len - at)
				n = len - at;
			mask_feed(m, text + at, n, &out);
		}
		mask_finish(m, &out);
		if (strcmp(masked(m, text, len),
			out.data == NULL ? "" : out.data) == 0)
			same++;
		if (out.data != NULL && strstr(out.data, "***") != NULL)
			hit++;
		mask_close(m);
		arena_clear(a);
	}
	ok(same == rounds, "%s: the pieces give the same output as the whole",
	    name);
	ok(hit > rounds / 3, "%s: many texts contained a secret (%d)", name,
	    hit);
	buf_release(&out);
}

static void
large(void)
{
	static char secret[65536], text[3 * sizeof(secret)];
	struct mask *m = mask_open(a);
	struct buf out;
	size_t i;

	for (i = 0; i < sizeof(secret); i++)
		secret[i] = (char)('a' + draw(26));
	(void)memset(text, '.', sizeof(text));
	(void)memcpy(text + 1000, secret, sizeof(secret));
	mask_add(m, secret, sizeof(secret));
	buf_init(&out, sizeof(text));
	for (i = 0; i < sizeof(text); i += 4096)
		mask_feed(m, text + i, 4096, &out);
	mask_finish(m, &out);
	is_int((long long)out.len,
	    (long long)(sizeof(text) - sizeof(secret) + 3),
	    "a secret of 64 KiB is masked in pieces");
	buf_release(&out);
	mask_close(m);
}

int
main(void)
{
	static const char *const plain[] = { "a", "b", "a", "b", "\n", "c",
		NULL };
	static const char *const base64[] = { "QUFB", "QU", "FB", "\r", "\n",
		" ", "Q", "BQUF", "QUFBQUFB", NULL };
	static const char *const hex[] = { "61", "6", "0x61", " ", "\n", ":",
		"1", "0x", "6161", "\\x61", NULL };

	a = arena_open((size_t)1 << 28);
	forms();
	quoting();
	many_sequences();
	several();
	flushing();
	large();
	splits(plain, "abab\nc", "plain");
	splits(base64, "AAAAAAAB", "base64");
	splits(hex, "aaaaaaap", "hex");
	arena_close(a);
	return tap_done();
}
