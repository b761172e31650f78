/* SPDX-License-Identifier: ISC */
/*
 * Patterns that users write: what they match, their faults, and that no pattern
 * takes much time or memory.
 */
#include "core/ere.h"

#include <regex.h>
#include <stdint.h>
#include <stdlib.h>

#include "tap.h"

#define N(table) (sizeof(table) / sizeof((table)[0]))

static const struct {
	const char *ere, *text;
	bool yes;
} matches[] = {
	{ "", "", true },
	{ "", "a", false },
	{ "a|", "", true },
	{ "(|a)b", "b", true },
	{ "()", "", true },
	{ "a{0}", "", true },
	{ "a{0}", "a", false },
	{ "a{2}", "aa", true },
	{ "a{2}", "aaa", false },
	{ "a{2,}", "a", false },
	{ "a{2,}", "aaaaa", true },
	{ "a{0,}", "", true },
	{ "a{1,3}", "aaa", true },
	{ "a{1,3}", "aaaa", false },
	{ "(ab){2,3}c", "ababc", true },
	{ "(a|b{2}){2}", "abb", true },
	{ "((a*)*)*b", "aaab", true },
	{ "((a*)+)*", "", true },
	{ "^a$|^b$", "b", true },
	{ "(^a)b", "ab", true },
	{ "a^b", "a^b", false },
	{ "a$b", "a$b", false },
	{ ".", "\n", true },
	{ ".", "\xc3\xa9", true },
	{ "..", "\xc3\xa9", false },
	{ ".{3}", "\xe2\x82\xac\xf0\x9f\x98\x80\xc3\xa9", true },
	{ ".", "\xff", true },
	{ "..", "\xe2\x82", true },
	{ "\xc3\xa9+", "\xc3\xa9\xc3\xa9", true },
	{ "[\xc3\xa0-\xc3\xbc]", "\xc3\xa9", true },
	{ "[\xc3\xa0-\xc3\xbc]", "\xc3", false },
	{ "[^\xc3\xa9]", "\xc3\xa9", false },
	{ "[^\xc3\xa9]", "e", true },
	{ "[]a]+", "a]", true },
	{ "[^]a]", "]", false },
	{ "[^]a]", "b", true },
	{ "[a-]+", "a-", true },
	{ "[-a]+", "a-", true },
	{ "[+--]", ",", true },
	{ "[a^]+", "a^", true },
	{ "[.*()|$^{+?]+", ".*()|$^{+?", true },
	{ "[\\]", "\\", true },
	{ "[\\.]+", "\\.", true },
	{ "[\\\\a]+", "\\a", true },
	{ "[[:alpha:]_]+", "aZ_", true },
	{ "[[:digit:][:upper:]]+", "0A9", true },
	{ "[^[:space:]]+", "a\tb", false },
	{ "[[:punct:]]+", "!@[`{~", true },
	{ "[[:xdigit:]]{2}", "fG", false },
	{ "[[:cntrl:]]", "\x7f", true },
	{ "[[.-.]a]", "-", true },
	{ "[[=a=]b]", "a", true },
	{ "\\.\\*\\[\\]\\{\\}\\(\\)\\|\\^\\$\\+\\?\\\\\\/\\-",
	    ".*[]{}()|^$+?\\/-", true },
	{ "}]", "}]", true },
};

static void
matching(void)
{
	const char *fault;
	size_t i;

	for (i = 0; i < N(matches); i++) {
		fault = ere_fault(matches[i].ere);
		ok(fault == NULL &&
			ere_matches(matches[i].ere, matches[i].text) ==
			    matches[i].yes,
		    "/%s/ %s case %zu%s%s", matches[i].ere,
		    matches[i].yes ? "matches" : "does not match", i,
		    fault == NULL ? "" : " # fault: ",
		    fault == NULL ? "" : fault);
	}
}

static const struct {
	const char *ere, *says;
} faulty[] = {
	{ "\\d+", "write [0-9]" },
	{ "a\\D", "write [^0-9]" },
	{ "\\w", "write [A-Za-z0-9_]" },
	{ "\\W", "write [^A-Za-z0-9_]" },
	{ "(\\s)", "write [[:space:]]" },
	{ "\\S*", "write [^[:space:]]" },
	{ "a\\n", "the line feed itself" },
	{ "\\bword\\b", "no word boundaries" },
	{ "\\<word", "no word boundaries" },
	{ "\\Aa", "leave it out" },
	{ "a\\z", "leave it out" },
	{ "\\`a", "leave it out" },
	{ "\\q", "write q for the letter" },
	{ "(a)\\1", "must not contain a back reference such as \\1" },
	{ "a\\", "ends with a backslash" },
	{ "[\\d.]", "write 0-9" },
	{ "[\\w-]", "write A-Za-z0-9_" },
	{ "[^\\s]", "write [:space:]" },
	{ "[\\q]", "write \\\\q" },
	{ "(?:a)", "write ( for a group" },
	{ "(?i)a", "write ( for a group" },
	{ "a*?", "right after a repetition" },
	{ "a++", "right after a repetition" },
	{ "a{2}{3}", "right after a repetition" },
	{ "*a", "nothing before *" },
	{ "a|+", "nothing before +" },
	{ "(?a)", "write ( for a group" },
	{ "^*", "nothing before *" },
	{ "({1})", "nothing before {" },
	{ "a{", "without a number" },
	{ "a{,3}", "{0,n}" },
	{ "a{1", "without its }" },
	{ "a{1,2", "without its }" },
	{ "a{2,1}", "the smaller number must come first" },
	{ "a{1001}", "repeats more than 1000 times" },
	{ "a{99999999999999999999}", "repeats more than 1000 times" },
	{ "(a", "without its )" },
	{ "a)", "without its (" },
	{ "a)(b", "without its (" },
	{ "[a", "without its ]" },
	{ "[", "without its ]" },
	{ "[]", "without its ]" },
	{ "[[:alpha:]", "without its ]" },
	{ "[b-a]", "end comes before its beginning" },
	{ "[[:foo:]]", "not a character class" },
	{ "[[:alpha]]", "not a character class" },
	{ "[a-[:digit:]]", "ends in a character class" },
	{ "[[.ab.]]", "more than one character" },
	{ "((a{1,100}){1,100}){1,100}", "repeats too much" },
	{ "((((){999}){999}){999}){999}", "repeats too much" },
};

static void
faults(void)
{
	const char *got;
	size_t i;

	for (i = 0; i < N(faulty); i++) {
		got = ere_fault(faulty[i].ere);
		if (!ok(got != NULL && strstr(got, faulty[i].says) != NULL,
			"the fault of /%s/ says what to write", faulty[i].ere))
			(void)printf("# got: %s\n", got == NULL ? "" : got);
		ok(!ere_matches(faulty[i].ere, ""),
		    "a faulty pattern matches nothing");
	}
}

/* Patterns that take other matchers minutes or all memory. */
static void
hostile(void)
{
	static const char *const eres[] = { "((a*)*){1,150}b", "(a|aa)*c",
		"(.*)(.*)(.*)x", "(((a?)*)*){1,99}b", "((a|a)*|(a|a)*)*b",
		"(a?){300}b", "(x+x+)+y|((a+)+)+b", "(a|b)*a(a|b){240}c" };
	static char text[65536], deep[2 * 600 + 1], longest[ERE_BYTES_MAX + 2];
	size_t i;

	(void)memset(text, 'a', sizeof(text) - 1);
	for (i = 0; i < N(eres); i++)
		ok(ere_fault(eres[i]) == NULL && !ere_matches(eres[i], text),
		    "64 KiB do not match /%s/", eres[i]);
	(void)memset(deep, '(', sizeof(deep) / 2);
	(void)memset(deep + sizeof(deep) / 2, ')', sizeof(deep) / 2);
	ok(ere_fault(deep) != NULL, "a pattern with deep groups is a fault");
	(void)memset(longest, '|', sizeof(longest) - 1);
	ok(ere_fault(longest) != NULL, "a long pattern is a fault");
	longest[ERE_BYTES_MAX] = '\0';
	ok(ere_fault(longest) != NULL,
	    "a long pattern of empty alternatives is a fault");
	for (i = 0; i < 100000; i++)
		if (ere_matches("a", "b") || !ere_matches("a|b", "b"))
			break;
	is_int((long long)i, 100000, "a match does not affect later ones");
}

static uint32_t seed = 20251;

static uint32_t
chance(uint32_t n)
{
	seed = seed * 1664525u + 1013904223u;
	return (seed >> 16) % n;
}

/* The result equals that of libc for patterns that both accept. */
static bool
as_libc(const char *ere)
{
	char anchored[128], text[6];
	unsigned which, i;
	regex_t re;
	bool same = true;

	(void)snprintf(anchored, sizeof(anchored), "^(%s)$", ere);
	if (ere_fault(ere) != NULL ||
	    regcomp(&re, anchored, REG_EXTENDED | REG_NOSUB) != 0)
		return true;
	for (which = 1; which < 64 && same; which++) {
		for (i = 0; which >> (i + 1) != 0; i++)
			text[i] = (which >> i & 1) != 0 ? 'a' : 'b';
		text[i] = '\0';
		same = (regexec(&re, text, 0, NULL, 0) == 0) ==
		    ere_matches(ere, text);
	}
	regfree(&re);
	if (!same)
		(void)printf("# /%s/ and \"%s\"\n", ere, text);
	return same;
}

static void
compared(void)
{
	static const char *const parts[] = { "a", "b", "a", "b", ".", "[ab]",
		"[^a]", "(", ")", "(", ")", "|", "*", "+", "?", "{2}", "{0,1}",
		"{1,}", "$" };
	char ere[64];
	unsigned k, n, valid = 0, wrong = 0;
	size_t len;

	for (k = 0; k < RANDOM_CASES(200000); k++) {
		len = 0;
		for (n = 1 + chance(8); n > 0; n--)
			len += (size_t)snprintf(ere + len, sizeof(ere) - len,
			    "%s", parts[chance(N(parts))]);
		if (ere_fault(ere) == NULL)
			valid++;
		if (!as_libc(ere))
			wrong++;
	}
	ok(valid > RANDOM_CASES(10000), "many random patterns are valid (%u)",
	    valid);
	is_int(wrong, 0, "random patterns match the same texts as with libc");
}

int
main(void)
{
	matching();
	faults();
	hostile();
	compared();
	return tap_done();
}
