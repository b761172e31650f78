/* SPDX-License-Identifier: ISC */
#include "core/str.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "core/buf.h"
#include "core/ere.h"
#include "core/mark.h"
#include "core/utf8.h"

#define DAY_S (INT64_C(24) * 3600)
#define DAY_MS (DAY_S * 1000)

bool
str_eq(const char *a, const char *b)
{
	if (a == NULL || b == NULL)
		return a == b;
	return strcmp(a, b) == 0;
}

bool
str_starts(const char *s, const char *prefix)
{
	return strncmp(s, prefix, strlen(prefix)) == 0;
}

bool
str_ends(const char *s, const char *suffix)
{
	size_t len = strlen(s), tail = strlen(suffix);

	return len >= tail && memcmp(s + len - tail, suffix, tail) == 0;
}

const char *
str_chomp(struct arena *a, const char *s)
{
	size_t len = strlen(s);

	while (len > 0 && s[len - 1] == '\n')
		len--;
	return arena_strndup(a, s, len);
}

const char *
str_clip(struct arena *a, const char *s, size_t max)
{
	static const char ellipsis[] = "…";
	char *head;

	if (strlen(s) <= max)
		return s;
	head = arena_strndup(a, s, max - strlen(ellipsis));
	utf8_drop_partial(head);
	return arena_printf(a, "%s%s", head, ellipsis);
}

size_t
str_chars(const char *s)
{
	size_t n = 0;

	for (; *s != '\0'; s++)
		if (((unsigned char)*s & 0xc0) != 0x80)
			n++;
	return n;
}

/* Returns the code point at s and its length; 0 and 1 for a byte that is not
 * UTF-8. */
static uint32_t
code_at(const char *s, size_t *len)
{
	static const unsigned char lead[] = { 0, 0x7f, 0x1f, 0x0f, 0x07 };
	const unsigned char *p = (const unsigned char *)s;
	uint32_t code;
	size_t i;

	if ((*len = utf8_len(s, strnlen(s, 4))) == 0) {
		*len = 1;
		return 0;
	}
	code = p[0] & lead[*len];
	for (i = 1; i < *len; i++)
		code = code << 6 | (p[i] & 0x3f);
	return code;
}

struct range {
	uint32_t first, last;
};

static bool
is_among(const struct range *r, size_t n, uint32_t code)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (code >= r[i].first && code <= r[i].last)
			return true;
	return false;
}

static bool
is_control(uint32_t code)
{
	static const struct range controls[] = { { 0x01, 0x1f }, { 0x7f, 0x9f },
		{ 0x61c, 0x61c }, { 0x200e, 0x200f }, { 0x2028, 0x202e },
		{ 0x2066, 0x2069 } };

	return is_among(controls, sizeof(controls) / sizeof(controls[0]), code);
}

/* White space of ECMA-262, then characters that are ignorable by default
 * (Unicode, 5.21) or have an empty glyph. */
static bool
is_unseen(uint32_t code)
{
	static const struct range unseen[] = { { 0x09, 0x0d }, { 0x20, 0x20 },
		{ 0xa0, 0xa0 }, { 0x1680, 0x1680 }, { 0x2000, 0x200a },
		{ 0x2028, 0x2029 }, { 0x202f, 0x202f }, { 0x205f, 0x205f },
		{ 0x3000, 0x3000 }, { 0xad, 0xad }, { 0x34f, 0x34f },
		{ 0x61c, 0x61c }, { 0x115f, 0x1160 }, { 0x17b4, 0x17b5 },
		{ 0x180b, 0x180f }, { 0x200b, 0x200f }, { 0x202a, 0x202e },
		{ 0x2060, 0x206f }, { 0x2800, 0x2800 }, { 0x3164, 0x3164 },
		{ 0xfe00, 0xfe0f }, { 0xfeff, 0xfeff }, { 0xffa0, 0xffa0 },
		{ 0xfff0, 0xfffb }, { 0x1bca0, 0x1bca3 }, { 0x1d173, 0x1d17a },
		{ 0xe0000, 0xe0fff } };

	return is_among(unseen, sizeof(unseen) / sizeof(unseen[0]), code);
}

/* Nearly all text is this alone. */
static bool
is_printable_ascii(char c)
{
	return c >= ' ' && c <= '~';
}

bool
str_has_control(const char *s)
{
	size_t len;

	for (; *s != '\0'; s += len) {
		len = 1;
		if (!is_printable_ascii(*s) && is_control(code_at(s, &len)))
			return true;
	}
	return false;
}

bool
str_has_control_in_lines(const char *s)
{
	size_t len;

	for (; *s != '\0'; s += len)
		if (is_control(code_at(s, &len)) &&
		    strchr("\t\n\r", *s) == NULL)
			return true;
	return false;
}

bool
str_is_blank(const char *s)
{
	size_t len;

	for (; *s != '\0'; s += len) {
		const uint32_t code = code_at(s, &len);

		if (!is_unseen(code) && !mark_is(code))
			return false;
	}
	return true;
}

const char *
str_visible(struct arena *a, const char *s)
{
	struct buf b;
	const char *out;
	uint32_t code;
	size_t len;

	if (!str_has_control(s) && utf8_valid(s, strlen(s)))
		return s;
	buf_init(&b, SIZE_MAX / 2);
	for (; *s != '\0'; s += len) {
		code = code_at(s, &len);
		if (code == 0)
			buf_printf(&b, "\\x%02x", (unsigned char)*s);
		else if (is_control(code))
			buf_printf(&b, "\\u{%x}", code);
		else
			buf_add(&b, s, len);
	}
	out = arena_strndup(a, b.data, b.len);
	buf_release(&b);
	return out;
}

bool
str_matches(const char *s, const char *ere)
{
	return ere_matches(ere, s);
}

const char *
str_camel(struct arena *a, const char *snake)
{
	char *out = arena_strdup(a, snake);
	char *to = out;

	for (; *snake != '\0'; snake++) {
		if (*snake == '_' && snake[1] != '\0')
			*to++ = (char)toupper((unsigned char)*++snake);
		else
			*to++ = *snake;
	}
	*to = '\0';
	return out;
}

const char *
str_slug(struct arena *a, const char *name)
{
	char out[65];
	size_t len = 0;

	for (; *name != '\0' && len < sizeof(out) - 1; name++) {
		unsigned char c = (unsigned char)*name;

		if (c < 0x80 && isalnum(c))
			out[len++] = (char)tolower(c);
		else if (len > 0 && out[len - 1] != '-')
			out[len++] = '-';
	}
	while (len > 0 && out[len - 1] == '-')
		len--;
	if (len == 0)
		return "project";
	return arena_strndup(a, out, len);
}

/* Writes a number with two digits. */
static char *
two_digits(char *at, int64_t n)
{
	*at++ = (char)('0' + n / 10);
	*at++ = (char)('0' + n % 10);
	return at;
}

/* Most of the times in a response are of the same day. */
void
str_time(char out[STR_TIME_SIZE], int64_t ms)
{
	static char date[STR_TIME_SIZE / 2];
	static int64_t known = INT64_MIN;
	int64_t day = ms / DAY_MS - (ms % DAY_MS < 0), rest = ms - day * DAY_MS;
	time_t midnight = (time_t)(day * DAY_S);
	struct tm tm;
	char *at;

	if (day != known) {
		(void)gmtime_r(&midnight, &tm);
		(void)snprintf(date, sizeof(date), "%04d-%02d-%02dT",
		    tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday);
		known = day;
	}
	at = stpcpy(out, date);
	at = two_digits(at, rest / 3600000);
	*at++ = ':';
	at = two_digits(at, rest / 60000 % 60);
	*at++ = ':';
	at = two_digits(at, rest / 1000 % 60);
	*at++ = '.';
	*at++ = (char)('0' + rest / 100 % 10);
	at = two_digits(at, rest % 100);
	*at++ = 'Z';
	*at = '\0';
}

/* Reads `width` digits in [low, high] at *s and advances *s past them. */
static bool
digits(const char **s, size_t width, int low, int high, int *out)
{
	int value = 0;
	size_t i;

	for (i = 0; i < width; i++, (*s)++) {
		if (!isdigit((unsigned char)**s))
			return false;
		value = value * 10 + (**s - '0');
	}
	*out = value;
	return value >= low && value <= high;
}

static bool
literal(const char **s, char upper)
{
	if (toupper((unsigned char)**s) != upper)
		return false;
	(*s)++;
	return true;
}

/* Converts "Z" or "+hh:mm" to seconds east of Greenwich. */
static bool
offset_parse(const char **s, int64_t *out)
{
	int hours, minutes;
	int64_t sign = **s == '-' ? -1 : 1;

	*out = 0;
	if (literal(s, 'Z'))
		return true;
	if (**s != '+' && **s != '-')
		return false;
	(*s)++;
	if (!digits(s, 2, 0, 23, &hours) || !literal(s, ':') ||
	    !digits(s, 2, 0, 59, &minutes))
		return false;
	*out = sign * (hours * 3600 + minutes * 60);
	return true;
}

/* An offset may lead to a year that cannot be written or stored. */
#define YEAR_1 (INT64_C(-62135596800) * 1000)
#define YEAR_10000 (INT64_C(253402300800) * 1000)

bool
str_time_parse(const char *s, int64_t *out)
{
	struct tm tm = { .tm_isdst = 0 }, back;
	int64_t east, ms = 0, unit = 100;
	time_t t;

	*out = 0;
	if (!digits(&s, 4, 1, 9999, &tm.tm_year) || !literal(&s, '-') ||
	    !digits(&s, 2, 1, 12, &tm.tm_mon) || !literal(&s, '-') ||
	    !digits(&s, 2, 1, 31, &tm.tm_mday) || !literal(&s, 'T') ||
	    !digits(&s, 2, 0, 23, &tm.tm_hour) || !literal(&s, ':') ||
	    !digits(&s, 2, 0, 59, &tm.tm_min) || !literal(&s, ':') ||
	    !digits(&s, 2, 0, 60, &tm.tm_sec))
		return false;
	if (*s == '.') {
		if (!isdigit((unsigned char)*++s))
			return false;
		for (; isdigit((unsigned char)*s); s++, unit /= 10)
			ms += unit * (*s - '0');
	}
	if (!offset_parse(&s, &east) || *s != '\0')
		return false;
	tm.tm_year -= 1900;
	tm.tm_mon -= 1;
	back = tm;
	t = timegm(&back);
	if (back.tm_mday != tm.tm_mday) /* such as the 31st of a month with 30
					 * days */
		return false;
	*out = ((int64_t)t - east) * 1000 + ms;
	return *out >= YEAR_1 && *out < YEAR_10000;
}
