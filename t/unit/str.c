/* SPDX-License-Identifier: ISC */
#include "core/str.h"

#include "core/utf8.h"
#include "tap.h"

#define N(table) (sizeof(table) / sizeof((table)[0]))

static void
comparing(void)
{
	ok(str_eq("a", "a") && str_eq(NULL, NULL),
	    "str_eq accepts equal strings and two NULLs");
	ok(!str_eq("a", "b") && !str_eq(NULL, "") && !str_eq("", NULL),
	    "str_eq rejects different strings");
	ok(str_starts("refs/heads", "refs/") && str_starts("x", ""),
	    "str_starts accepts a prefix");
	ok(!str_starts("ref", "refs"), "str_starts rejects a longer text");
	ok(str_ends("a.git", ".git") && str_ends("x", ""),
	    "str_ends accepts a suffix");
	ok(!str_ends("git", ".git") && !str_ends("a.gitx", ".git"),
	    "str_ends rejects another text");
	ok(str_has_control("a\nb") && str_has_control("\x7f") &&
		str_has_control("\x01"),
	    "str_control finds control bytes");
	ok(!str_has_control("") && !str_has_control("a b~\xc3\xa9"),
	    "str_control accepts other bytes");
}

static const struct {
	const char *text;
	bool good;
	size_t chars;
} utf8_rows[] = {
	{ "", true, 0 },
	{ "abc\x7f", true, 4 },
	{ "\xc2\x80", true, 1 },
	{ "\xdf\xbf", true, 1 },
	{ "\xe0\xa0\x80", true, 1 },
	{ "\xed\x9f\xbf", true, 1 },
	{ "\xee\x80\x80", true, 1 },
	{ "\xef\xbf\xbf", true, 1 },
	{ "\xf0\x90\x80\x80", true, 1 },
	{ "\xf4\x8f\xbf\xbf", true, 1 },
	{ "na\xc3\xafve \xe2\x82\xac", true, 7 },
	{ "\x80", false, 0 },
	{ "\xbf", false, 0 },
	{ "\xc0\x80", false, 0 },
	{ "\xc1\xbf", false, 0 },
	{ "\xc3", false, 0 },
	{ "\xc3 ", false, 0 },
	{ "\xe0\x9f\xbf", false, 0 },
	{ "\xe2\x82", false, 0 },
	{ "\xe2\x82 ", false, 0 },
	{ "\xed\xa0\x80", false, 0 },
	{ "\xed\xbf\xbf", false, 0 },
	{ "\xf0\x8f\xbf\xbf", false, 0 },
	{ "\xf0\x90\x80", false, 0 },
	{ "\xf4\x90\x80\x80", false, 0 },
	{ "\xf5\x80\x80\x80", false, 0 },
	{ "\xfe", false, 0 },
	{ "\xff", false, 0 },
	{ "ok\xff", false, 0 },
};

static void
utf8(void)
{
	size_t i;

	for (i = 0; i < N(utf8_rows); i++) {
		const char *s = utf8_rows[i].text;

		ok(utf8_valid(s, strlen(s)) == utf8_rows[i].good,
		    "UTF-8 row %zu", i);
		if (utf8_rows[i].good)
			is_int((long long)str_chars(s),
			    (long long)utf8_rows[i].chars,
			    "UTF-8 has its number of code points");
	}
	ok(utf8_valid("a\0b", 3), "NUL is a code point");
	ok(!utf8_valid("\xe2\x82\xac", 2),
	    "utf8_valid reads no byte past the length");
}

static void
clipped(void)
{
	struct arena *a = arena_open(1 << 16);

	is_str(str_clip(a, "12345678", 8), "12345678",
	    "str_clip returns a text that fits");
	is_str(str_clip(a, "123456789", 8), "12345…",
	    "str_clip ends a longer text with an ellipsis");
	is_str(str_clip(a, "123€56789", 8), "123…",
	    "str_clip drops a character that it would cut");
	is_str(str_clip(a, "12€456789", 8), "12€…",
	    "str_clip keeps a character that just fits");
	is_str(str_clip(a, "1😀456789", 7), "1…",
	    "str_clip drops a character of four bytes");
	arena_close(a);
}

static const struct {
	const char *text, *ere;
	bool yes;
} ere_rows[] = {
	{ "abc", "abc", true },
	{ "abc", "[a-c]+", true },
	{ "", "", true },
	{ "v1.2.3", "v[0-9]+(\\.[0-9]+)*", true },
	{ "aab", "a|aab", true },
	{ "\xc3\xa9", ".", true },
	{ "abcd", "abc", false },
	{ "xabc", "abc", false },
	{ "abc\n", "abc", false },
	{ "abc", "^b", false },
	{ "", "a", false },
	{ "a", "[", false },
	{ "a", "a{2,1}", false },
	{ "(", "(", false },
	{ "b", "a|b", true },
	{ "cb", "a|b", false },
	{ "ab", "^ab$", true },
};

static void
patterns(void)
{
	size_t i;

	for (i = 0; i < N(ere_rows); i++)
		ok(str_matches(ere_rows[i].text, ere_rows[i].ere) ==
			ere_rows[i].yes,
		    "\"%s\" and /%s/", ere_rows[i].text, ere_rows[i].ere);
}

static const struct {
	const char *text;
	bool good;
	int64_t ms;
} time_rows[] = {
	{ "1970-01-01T00:00:00Z", true, 0 },
	{ "1970-01-01T00:00:00.001Z", true, 1 },
	{ "2026-11-21T01:02:03.456Z", true, INT64_C(1795222923456) },
	{ "2026-11-21t01:02:03.456z", true, INT64_C(1795222923456) },
	{ "2026-11-21T02:02:03.456+01:00", true, INT64_C(1795222923456) },
	{ "2026-11-20T19:32:03.456-05:30", true, INT64_C(1795222923456) },
	{ "2026-11-21T01:02:03.4567899Z", true, INT64_C(1795222923456) },
	{ "2024-02-29T00:00:00Z", true, INT64_C(1709164800000) },
	{ "1969-12-31T23:59:59.999Z", true, -1 },
	{ "9999-12-31T23:59:59Z", true, INT64_C(253402300799000) },
	{ "", false, 0 },
	{ "9999-12-31T23:59:59.999Z", true, INT64_C(253402300799999) },
	{ "0001-01-01T00:00:00Z", true, INT64_C(-62135596800000) },
	{ "9999-12-31T23:59:59-00:01", false, 0 },
	{ "9999-12-31T23:59:60Z", false, 0 },
	{ "0001-01-01T00:00:00+00:01", false, 0 },
	{ "2026-11-21", false, 0 },
	{ "2026-11-21T01:02:03", false, 0 },
	{ "2026-11-21 01:02:03Z", false, 0 },
	{ "2026-11-21T01:02Z", false, 0 },
	{ "2026-11-21T01:02:03.Z", false, 0 },
	{ "2026-11-21T01:02:03+0100", false, 0 },
	{ "2026-11-21T01:02:03+24:00", false, 0 },
	{ "2026-11-21T01:02:03Z ", false, 0 },
	{ "2026-13-21T01:02:03Z", false, 0 },
	{ "2026-00-21T01:02:03Z", false, 0 },
	{ "2026-11-31T01:02:03Z", false, 0 },
	{ "2025-02-29T01:02:03Z", false, 0 },
	{ "2026-11-21T24:02:03Z", false, 0 },
	{ "2026-11-21T01:60:03Z", false, 0 },
	{ "0000-11-21T01:02:03Z", false, 0 },
	{ "26-11-21T01:02:03Z", false, 0 },
	{ "+2026-11-21T01:02:03Z", false, 0 },
};

static void
times(void)
{
	char text[STR_TIME_SIZE];
	size_t i;
	int64_t ms;

	for (i = 0; i < N(time_rows); i++) {
		bool good = str_time_parse(time_rows[i].text, &ms);

		if (!ok(good == time_rows[i].good &&
			    (!good || ms == time_rows[i].ms),
			"time \"%s\"", time_rows[i].text))
			(void)printf("# %lld\n", (long long)ms);
	}
	str_time(text, INT64_C(1795222923456));
	is_str(text, "2026-11-21T01:02:03.456Z",
	    "a time is formatted in RFC 3339");
	str_time(text, -1);
	is_str(text, "1969-12-31T23:59:59.999Z",
	    "a time before 1970 is formatted");
	str_time(text, INT64_C(1709164799999));
	is_str(text, "2024-02-28T23:59:59.999Z",
	    "the last millisecond of a day is formatted");
	str_time(text, INT64_C(1709164800000));
	is_str(text, "2024-02-29T00:00:00.000Z",
	    "the first millisecond of the next day is formatted");
	ok(time_now_ms() > INT64_C(1700000000000),
	    "time_now_ms returns the current time");
	ms = time_mono_ms();
	ok(time_mono_ms() >= ms, "time_mono_ms does not run backwards");
}

static void
names(void)
{
	struct arena *a = arena_open(1 << 20);
	const char *slug;

	is_str(str_camel(a, "default_branch"), "defaultBranch",
	    "str_camel joins two words");
	is_str(str_camel(a, "id"), "id", "str_camel keeps one word");
	is_str(str_camel(a, "a_b_c"), "aBC", "str_camel joins three words");
	is_str(str_camel(a, "x_"), "x_",
	    "str_camel keeps a trailing underscore");
	ok(str_is_blank("") && str_is_blank(" \t\n") &&
		str_is_blank(" \u00a0\u3000\u2003\ufeff"),
	    "str_is_blank accepts blanks of any script");
	ok(!str_is_blank(" a ") && !str_is_blank("\u200bx") &&
		!str_is_blank("\u00e9") && !str_is_blank("\xe3\x80"),
	    "str_is_blank rejects other texts");
	ok(str_is_blank("\u0301") && str_is_blank(" \u0301\u20d0 \u093f") &&
		str_is_blank("\U0001d165\U000e01ef"),
	    "str_is_blank accepts combining marks alone");
	ok(!str_is_blank("e\u0301") && !str_is_blank("\u0915\u093f") &&
		!str_is_blank("\u0370") && !str_is_blank("\u02ff"),
	    "str_is_blank rejects a character with a mark, and neighbors of "
	    "the marks");
	is_str(str_slug(a, "My Shop"), "my-shop",
	    "str_slug returns lower case with dashes");
	is_str(str_slug(a, "  a -- b! "), "a-b",
	    "str_slug removes repeated dashes");
	is_str(str_slug(a, "\xc3\xa9t\xc3\xa9"), "t",
	    "str_slug keeps ASCII alone");
	is_str(str_slug(a, "../.."), "project",
	    "str_slug of dots alone returns a default");
	is_str(str_slug(a, ""), "project",
	    "str_slug of an empty text returns a default");
	slug = str_slug(a,
	    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	    "aaaaaaaaaaaa aaaaaaaa");
	ok(strlen(slug) <= 64 && slug[strlen(slug) - 1] == 'a',
	    "str_slug truncates a long text, not at a dash");
	arena_close(a);
}

int
main(void)
{
	comparing();
	utf8();
	clipped();
	patterns();
	times();
	names();
	return tap_done();
}
