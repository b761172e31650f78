/* SPDX-License-Identifier: ISC */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/num.h"
#include "core/str.h"
#include "core/utf8.h"
#include "json/inner.h"

#define NAMED_DEPTH 2
/* Significant digits stored; a number with more cannot be a safe whole
 * number. */
#define DIGITS 20

/* A member's name in the text, between its quotes.  There can be as many names
 * as values, so the struct is small. */
struct name {
	uint32_t at;     /* in the text, after the opening quote */
	uint32_t object; /* number of the object that contains it */
};

struct scan {
	const unsigned char *text;
	size_t len;
	size_t at;
	size_t values, max_values;
	size_t depth;
	size_t objects;
	struct name *names;
	size_t n_names, cap_names, max_names;
	size_t n_deep;     /* those of n_names below NAMED_DEPTH */
	struct buf *plain; /* NULL = not wanted */
	size_t copied;     /* bytes of the text already in it */
	const char *why;   /* it is not JSON, or exceeds a limit */
	size_t where;
	enum err_code code; /* of that */
	const char *unfit;  /* it is JSON, but not acceptable */
	size_t unfit_at;
};

/* 0.d1d2d3… times ten to the power of `point`. */
struct number {
	char digits[DIGITS + 1];
	size_t n;
	bool lost; /* there were more digits than are stored */
	bool negative;
	int64_t point;
};

static bool value(struct scan *s);

static bool
fail_at(struct scan *s, size_t at, const char *why)
{
	s->why = why;
	s->where = at;
	return false;
}

/* Records the first reason; the text may still turn out not to be JSON at
 * all. */
static void
unfit(struct scan *s, size_t at, const char *why)
{
	if (s->unfit != NULL)
		return;
	s->unfit = why;
	s->unfit_at = at;
}

/* The byte at the cursor, -1 at the end. */
static int
peek(const struct scan *s)
{
	return s->at < s->len ? s->text[s->at] : -1;
}

static bool
fail(struct scan *s, const char *why)
{
	return fail_at(s, s->at,
	    peek(s) == -1 ? "unexpected end of text" : why);
}

/* Fails because of a limit; the rest of the text may be JSON or not. */
static bool
fail_limit(struct scan *s, enum err_code code, const char *why)
{
	s->code = code;
	return fail_at(s, s->at, why);
}

static void
blanks(struct scan *s)
{
	int c;

	while ((c = peek(s)) == ' ' || c == '\t' || c == '\n' || c == '\r')
		s->at++;
}

static bool
is_digit(int c)
{
	return c >= '0' && c <= '9';
}

static int
hex_value(int c)
{
	if (is_digit(c))
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

/* Reads four hexadecimal digits. */
static bool
hex4(struct scan *s, uint32_t *out)
{
	int i, digit;

	*out = 0;
	for (i = 0; i < 4; i++, s->at++) {
		if ((digit = hex_value(peek(s))) == -1)
			return fail(s, "expected four hexadecimal digits");
		*out = *out * 16 + (uint32_t)digit;
	}
	return true;
}

/* Reads what follows "\u". */
static bool
unicode(struct scan *s, size_t start)
{
	uint32_t high, low;

	if (!hex4(s, &high))
		return false;
	if (high == 0)
		unfit(s, start, "U+0000 is not allowed");
	if (high < 0xd800 || high > 0xdfff)
		return true;
	if (high > 0xdbff || s->len - s->at < 2 || s->text[s->at] != '\\' ||
	    s->text[s->at + 1] != 'u')
		return fail_at(s, start, "unpaired surrogate");
	s->at += 2;
	if (!hex4(s, &low))
		return false;
	if (low < 0xdc00 || low > 0xdfff)
		return fail_at(s, start, "unpaired surrogate");
	return true;
}

static bool
escape(struct scan *s)
{
	size_t start = s->at++;
	int c = peek(s);

	if (c == -1)
		return fail(s, "");
	if (c == '\0' || strchr("\"\\/bfnrtu", c) == NULL)
		return fail_at(s, start, "unknown escape");
	s->at++;
	return c != 'u' || unicode(s, start);
}

/* Reads a code point of more than one byte. */
static bool
wide(struct scan *s)
{
	unsigned char lead = s->text[s->at];
	size_t step = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;

	if (s->len - s->at < step ||
	    !utf8_valid((const char *)s->text + s->at, step))
		return fail(s, "invalid UTF-8");
	s->at += step;
	return true;
}

static bool
string(struct scan *s)
{
	int c;

	s->at++;
	while ((c = peek(s)) != '"') {
		if (c < 0x20)
			return fail(s, "a control byte must be escaped");
		if (c == '\\') {
			if (!escape(s))
				return false;
		} else if (c >= 0x80) {
			if (!wide(s))
				return false;
		} else {
			s->at++;
		}
	}
	s->at++;
	return true;
}

static bool
digits(struct scan *s)
{
	if (!is_digit(peek(s)))
		return fail(s, "expected a digit");
	while (is_digit(peek(s)))
		s->at++;
	return true;
}

static bool
number_syntax(struct scan *s)
{
	int c;

	if (peek(s) == '-')
		s->at++;
	if (peek(s) == '0') {
		s->at++;
		if (is_digit(peek(s)))
			return fail(s, "a number must not have a leading zero");
	} else if (!digits(s)) {
		return false;
	}
	if (peek(s) == '.') {
		s->at++;
		if (!digits(s))
			return false;
	}
	if ((c = peek(s)) != 'e' && c != 'E')
		return true;
	s->at++;
	if ((c = peek(s)) == '+' || c == '-')
		s->at++;
	return digits(s);
}

/* Splits a well-formed number into its parts. */
static void
number_split(const unsigned char *p, const unsigned char *end,
    struct number *out)
{
	bool fraction = false, minus;
	int64_t power = 0;

	(void)memset(out, 0, sizeof(*out));
	out->negative = *p == '-';
	for (p += out->negative; p < end && (*p | 0x20) != 'e'; p++) {
		if (*p == '.') {
			fraction = true;
		} else if (*p == '0' && out->n == 0) {
			out->point -= fraction;
		} else {
			if (out->n < DIGITS)
				out->digits[out->n++] = (char)*p;
			else if (*p != '0')
				out->lost = true;
			out->point += !fraction;
		}
	}
	if (p < end) {
		minus = *++p == '-';
		p += !is_digit(*p);
		for (; p < end; p++)
			if (power < INT32_MAX)
				power = power * 10 + (*p - '0');
		out->point += minus ? -power : power;
	}
	while (out->n > 0 && out->digits[out->n - 1] == '0')
		out->n--;
	out->digits[out->n] = '\0';
}

static bool
number_finite(const struct number *n)
{
	/* Numbers from half a unit past the largest double round to
	 * infinity. */
	static const char most[] = "17976931348623158079";

	if (n->n == 0 || n->point < 309)
		return true;
	return n->point == 309 && strcmp(n->digits, most) <= 0;
}

/* The value, if it is a safe whole number. */
static bool
number_whole(const struct number *n, int64_t *out)
{
	int64_t i;

	*out = 0;
	if (n->n == 0)
		return true;
	if (n->lost || n->point < (int64_t)n->n || n->point > 16)
		return false;
	for (i = 0; i < n->point; i++)
		*out = *out * 10 +
		    ((size_t)i < n->n ? n->digits[(size_t)i] - '0' : 0);
	if (*out > NUM_SAFE)
		return false;
	if (n->negative)
		*out = -*out;
	return true;
}

/* Copies the text up to `at`. */
static void
copy_to(struct scan *s, size_t at)
{
	buf_add(s->plain, s->text + s->copied, at - s->copied);
	s->copied = at;
}

static bool
number(struct scan *s)
{
	size_t start = s->at;
	struct number n;
	int64_t whole;

	if (!number_syntax(s))
		return false;
	number_split(s->text + start, s->text + s->at, &n);
	if (!number_finite(&n))
		return fail_at(s, start, "the number is too large");
	if (s->plain == NULL)
		return true;
	copy_to(s, start);
	if (number_whole(&n, &whole))
		buf_printf(s->plain, "%lld", (long long)whole);
	else
		buf_puts(s->plain, "0.5");
	s->copied = s->at;
	return true;
}

static bool
word(struct scan *s, const char *text)
{
	size_t len = strlen(text);

	if (s->len - s->at < len || memcmp(s->text + s->at, text, len) != 0)
		return fail(s, "expected a value");
	s->at += len;
	return true;
}

/* Deep inside a foreign text, duplicate members are allowed once there are too
 * many to compare, because picked members are higher up.  Deep names have their
 * own count; otherwise they would leave no room for the ones above that
 * follow. */
static bool
name_keep(struct scan *s, size_t object)
{
	bool deep = s->depth > NAMED_DEPTH;

	if ((deep ? s->n_deep : s->n_names - s->n_deep) == s->max_names)
		return deep || fail(s, "too many members");
	if (deep)
		s->n_deep++;
	if (s->n_names == s->cap_names) {
		s->cap_names = s->cap_names == 0 ? 64 : 2 * s->cap_names;
		s->names = mem_grow(s->names, s->cap_names, sizeof(*s->names));
	}
	s->names[s->n_names].at = (uint32_t)s->at + 1;
	s->names[s->n_names++].object = (uint32_t)object;
	return true;
}

static bool
member(struct scan *s, size_t object)
{
	blanks(s);
	if (peek(s) != '"')
		return fail(s, "expected a member name in quotes");
	if (!name_keep(s, object) || !string(s))
		return false;
	blanks(s);
	if (peek(s) != ':')
		return fail(s, "expected a colon");
	s->at++;
	return value(s);
}

/* Reads an array or object up to its closing byte. */
static bool
container(struct scan *s, int close)
{
	size_t object = close == '}' ? ++s->objects : 0;

	if (++s->depth > JSON_DEPTH)
		return fail_limit(s, ERR_INVALID,
		    "the text is nested too deeply");
	s->at++;
	blanks(s);
	if (peek(s) != close) {
		for (;;) {
			if (!(object != 0 ? member(s, object) : value(s)))
				return false;
			if (peek(s) != ',')
				break;
			s->at++;
		}
		if (peek(s) != close)
			return fail(s,
			    close == '}' ? "expected a comma or }" :
					   "expected a comma or ]");
	}
	s->at++;
	s->depth--;
	return true;
}

static bool
one_value(struct scan *s)
{
	switch (peek(s)) {
	case '{':
		return container(s, '}');
	case '[':
		return container(s, ']');
	case '"':
		return string(s);
	case 't':
		return word(s, "true");
	case 'f':
		return word(s, "false");
	case 'n':
		return word(s, "null");
	default:
		if (peek(s) != '-' && !is_digit(peek(s)))
			return fail(s, "expected a value");
		return number(s);
	}
}

/* Reads a value and the white space around it. */
static bool
value(struct scan *s)
{
	blanks(s);
	if (++s->values > s->max_values)
		return fail_limit(s, ERR_TOO_LARGE, "too many values");
	if (!one_value(s))
		return false;
	blanks(s);
	return true;
}

static uint32_t
name_unit(const unsigned char **p)
{
	uint32_t unit = 0;
	int i;

	for (i = 0; i < 4; i++)
		unit = unit * 16 + (uint32_t)hex_value(*(*p)++);
	return unit;
}

static uint32_t
name_escape(const unsigned char **p)
{
	static const char from[] = "bfnrt", to[] = "\b\f\n\r\t";
	unsigned char c = *(*p)++;
	const char *simple;
	uint32_t unit;

	if (c != 'u') {
		simple = strchr(from, c);
		return simple == NULL ? c : (unsigned char)to[simple - from];
	}
	unit = name_unit(p);
	if (unit < 0xd800 || unit > 0xdbff)
		return unit;
	*p += 2;
	return 0x10000 + ((unit - 0xd800) << 10) + (name_unit(p) - 0xdc00);
}

uint32_t
json_code_next(const unsigned char **p)
{
	uint32_t c = *(*p)++;

	if (c == '"')
		return 0;
	if (c == '\\')
		return name_escape(p);
	if (c < 0x80)
		return c;
	c &= c < 0xe0 ? 0x1f : c < 0xf0 ? 0x0f : 0x07;
	while ((**p & 0xc0) == 0x80)
		c = c << 6 | (*(*p)++ & 0x3f);
	return c;
}

static int
name_compare(const void *left, const void *right, void *context)
{
	const struct name *a = left, *b = right;
	const struct scan *s = context;
	const unsigned char *p = s->text + a->at, *q = s->text + b->at;
	uint32_t c, d;

	if (a->object != b->object)
		return a->object < b->object ? -1 : 1;
	do {
		c = json_code_next(&p);
		d = json_code_next(&q);
	} while (c == d && c != 0);
	if (c != d)
		return c < d ? -1 : 1;
	return 0;
}

/* Checks that the members of each object differ, even if written with
 * escapes. */
static void
names_compare(struct scan *s)
{
	size_t i;

	if (s->n_names > 1)
		qsort_r(s->names, s->n_names, sizeof(*s->names), name_compare,
		    s);
	for (i = 1; i < s->n_names; i++)
		if (name_compare(&s->names[i - 1], &s->names[i], s) == 0)
			unfit(s, s->names[i].at, "duplicate member");
}

static const struct err *
scan(const char *text, size_t len, size_t values, size_t names,
    struct buf *plain)
{
	struct scan s = {
		.text = (const unsigned char *)text,
		.len = len,
		.max_values = values,
		.max_names = names,
		.plain = plain,
		.code = ERR_BAD_REQUEST,
	};
	bool good;

	assert(len < UINT32_MAX);
	good = value(&s);
	if (good && s.at < s.len)
		good = fail(&s, "text after the value");
	if (good)
		names_compare(&s);
	mem_free(s.names);
	if (!good && s.code == ERR_BAD_REQUEST)
		return err_public(ERR_BAD_REQUEST,
		    "This is not valid JSON at byte %zu: %s.", s.where + 1,
		    s.why);
	if (!good)
		return err_public(s.code, "At byte %zu: %s; the limit is %zu.",
		    s.where + 1, s.why,
		    s.code == ERR_INVALID ? (size_t)JSON_DEPTH : values);
	if (s.unfit != NULL)
		return err_public(ERR_INVALID, "At byte %zu: %s.",
		    s.unfit_at + 1, s.unfit);
	if (plain == NULL)
		return NULL;
	copy_to(&s, len);
	return buf_check(plain);
}

const struct err *
json_strict(const char *text, size_t len)
{
	return scan(text, len, JSON_VALUES, SIZE_MAX, NULL);
}

const struct err *
json_plain(const char *text, size_t len, size_t values, struct buf *plain)
{
	return scan(text, len, values, SIZE_MAX, plain);
}

const struct err *
json_foreign(const char *text, size_t len, size_t values)
{
	return scan(text, len, values, JSON_FOREIGN_VALUES, NULL);
}
