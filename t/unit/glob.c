/* SPDX-License-Identifier: ISC */
#include "core/glob.h"

#include "tap.h"

#define N(table) (sizeof(table) / sizeof((table)[0]))

static const struct {
	const char *pattern, *text;
	bool good;
} glob_rows[] = {
	{ "main", "main", true },
	{ "main", "mai", false },
	{ "main", "mainx", false },
	{ "main", "Main", false },
	{ "", "", true },
	{ "", "a", false },
	{ "*", "", true },
	{ "*", "main", true },
	{ "*", "a/b", false },
	{ "**", "a/b/c", true },
	{ "**", "", true },
	{ "release/*", "release/1", true },
	{ "release/*", "release/", true },
	{ "release/*", "release", false },
	{ "release/*", "release/1/x", false },
	{ "release/**", "release/1/x", true },
	{ "release/**", "released/1", false },
	{ "**/x", "a/b/x", true },
	{ "**/x", "x", false },
	{ "a/**/z", "a/b/c/z", true },
	{ "a/**/z", "a/z", false },
	{ "*-fix", "a-fix-fix", true },
	{ "*-fix", "a-fixed", false },
	{ "v?", "v1", true },
	{ "v?", "v", false },
	{ "v?", "v12", false },
	{ "v?", "v/", false },
	{ "v?x", "v\u00e9x", true },
	{ "v??x", "v\u00e9x", false },
	{ "\u00e9*", "\u00e9t\u00e9", true },
	{ "\u00e9", "\u00e8", false },
	{ "***", "a/b", true },
	{ "*?*", "a", true },
	{ "*?*", "", false },
	{ "[a]", "a", false },
	{ "[a]", "[a]", true },
	{ "a.c", "abc", false },
	{ "**a**a**a**a**a**a**b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", false },
};

static void
matching(void)
{
	char text[GLOB_MAX + 2], pattern[GLOB_MAX + 2];
	size_t i;

	for (i = 0; i < N(glob_rows); i++)
		ok(glob_matches(glob_rows[i].pattern, glob_rows[i].text) ==
			glob_rows[i].good,
		    "\"%s\" and \"%s\"", glob_rows[i].pattern,
		    glob_rows[i].text);
	for (i = 0; i < GLOB_MAX; i++)
		pattern[i] = i % 3 == 2 ? 'a' : '*';
	(void)memset(text, 'a', sizeof(text) - 1);
	text[sizeof(text) - 1] = pattern[GLOB_MAX] = '\0';
	ok(glob_matches(pattern, text),
	    "the most expensive pattern matches soon");
	pattern[GLOB_MAX] = '*';
	pattern[GLOB_MAX + 1] = '\0';
	ok(!glob_matches(pattern, text),
	    "a pattern that is too long matches nothing");
}

static void
finding(void)
{
	const char *names[] = { "src/b.c", "README", "src/b.c", "src/a/x.h",
		"src", "srcx/y.c", "docs/ab", "docs/a", "" };
	static const struct {
		const char *pattern;
		enum glob_found found;
	} rows[] = {
		{ "src/**", GLOB_ONE },
		{ "src/*.h", GLOB_NONE },
		{ "src/*/*.h", GLOB_ONE },
		{ "**/*.c", GLOB_ONE },
		{ "**.md", GLOB_NONE },
		{ "README", GLOB_ONE },
		{ "READ", GLOB_NONE },
		{ "docs/a?", GLOB_ONE },
		{ "docs/?b", GLOB_ONE },
		{ "docs/b?", GLOB_NONE },
		{ "zzz/**", GLOB_NONE },
		{ "s*", GLOB_ONE },
		{ "t*", GLOB_NONE },
	};
	size_t n, i, k, budget = 10000;
	bool plain;

	n = glob_names_sort(names, N(names));
	is_int((long long)n, 8, "a repeated name is dropped");
	is_str(names[0], "", "names are sorted from the first");
	is_str(names[n - 1], "srcx/y.c", "names are sorted to the last");
	for (i = 0; i < N(rows); i++) {
		ok(glob_find(rows[i].pattern, names, n, &budget) ==
			rows[i].found,
		    "\"%s\" among names", rows[i].pattern);
		for (k = 0, plain = false; k < n; k++)
			plain = plain ||
			    glob_matches(rows[i].pattern, names[k]);
		ok(plain == (rows[i].found == GLOB_ONE), "\"%s\" and each name",
		    rows[i].pattern);
	}
	ok(budget > 5000, "names that begin otherwise cost nothing (%zu left)",
	    budget);
	ok(glob_find("*", names, 0, &budget) == GLOB_NONE,
	    "no pattern matches one of no names");
}

/* The definition, by trying all lengths of a star. */
static bool
as_defined(const char *pattern, const char *s)
{
	if (*pattern == '\0')
		return *s == '\0';
	if (pattern[0] == '*' && pattern[1] == '*')
		return as_defined(pattern + 2, s) ||
		    (*s != '\0' && as_defined(pattern, s + 1));
	if (*pattern == '*')
		return as_defined(pattern + 1, s) ||
		    (*s != '\0' && *s != '/' && as_defined(pattern, s + 1));
	if (*s == '\0' || (*pattern == '?' ? *s == '/' : *pattern != *s))
		return false;
	return as_defined(pattern + 1, s + 1);
}

static size_t
random_text(char *out, size_t max, const char *from)
{
	static unsigned state = 1;
	size_t i, n = 0;

	for (i = 0; i < max; i++) {
		state = state * 1103515245 + 12345;
		if ((state >> 16) % 7 == 0)
			break;
		out[n++] = from[(state >> 16) % strlen(from)];
	}
	out[n] = '\0';
	return n;
}

static void
compared(void)
{
	char pattern[16], name[16];
	const char *names[1] = { name };
	size_t budget, wrong = 0, matched = 0;
	unsigned k;
	bool good;

	for (k = 0; k < RANDOM_CASES(200000); k++) {
		(void)random_text(pattern, k % 9, "ab/**?*");
		(void)random_text(name, k % 7, "aabb/");
		good = as_defined(pattern, name);
		matched += good;
		budget = 10000;
		wrong += glob_matches(pattern, name) != good;
		wrong += (glob_find(pattern, names, 1, &budget) == GLOB_ONE) !=
		    good;
	}
	ok(matched > RANDOM_CASES(10000), "many random patterns match (%zu)",
	    matched);
	is_int((long long)wrong, 0, "random patterns match as defined");
}

/* Patterns that keep many places open, and names on which they all stay. */
static void
bounded(void)
{
	static char text[64][4096], pattern[GLOB_MAX + 1];
	const char *names[N(text)];
	size_t budget = 1000000, i;

	for (i = 0; i < N(text); i++) {
		(void)memset(text[i], 'a', sizeof(text[i]) - 1);
		text[i][0] = (char)('0' + i);
		names[i] = text[i];
	}
	for (i = 0; i < 1000; i++)
		pattern[i] = i % 3 == 2 ? 'a' : '*';
	pattern[i] = 'b';
	ok(glob_find(pattern, names, N(names), &budget) == GLOB_NONE,
	    "names that end otherwise are not matched");
	ok(budget > 990000, "names that end otherwise cost little");
	pattern[i] = '?';
	pattern[0] = '/';
	ok(glob_find(pattern, names, N(names), &budget) == GLOB_NONE,
	    "names that begin otherwise are not matched");
	pattern[0] = '*';
	pattern[500] = '/';
	ok(glob_find(pattern, names, N(names), &budget) == GLOB_UNDECIDED,
	    "a costly pattern is not decided");
	ok(budget < 100, "a costly pattern uses up the budget");
}

int
main(void)
{
	matching();
	finding();
	compared();
	bounded();
	return tap_done();
}
