/* SPDX-License-Identifier: ISC */
/* The forms into which tools encode a secret. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "job/mask_inner.h"

#define ENCODED_MAX ((size_t)1 << 20)

static const char b64_plain[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
static const char b64_url[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/* Adds the base64 characters that depend only on these bytes, if `lead` other
 * bytes precede them. */
static void
add_base64(struct mask *m, const char *s, size_t len, size_t lead,
    const char *alphabet)
{
	const size_t bits = len * 8, skip = lead == 0 ? 0 : (lead == 1 ? 4 : 2);
	struct buf out;
	unsigned value;
	size_t at, i;

	buf_init(&out, ENCODED_MAX);
	for (at = skip; at + 6 <= bits; at += 6) {
		value = 0;
		for (i = at; i < at + 6; i++)
			value = value << 1 |
			    (((unsigned char)s[i / 8] >> (7 - i % 8)) & 1);
		buf_putc(&out, alphabet[value]);
	}
	if (!out.overflow)
		mask_needle(m, SPREAD_LINES, out.data, out.len);
	if (lead == 0 && at < bits) { /* the final characters, if nothing
				       * follows */
		value = 0;
		for (i = at; i < at + 6; i++)
			value = value << 1 |
			    (i >= bits ?
				    0 :
				    ((unsigned char)s[i / 8] >> (7 - i % 8)) &
					1);
		buf_putc(&out, alphabet[value]);
		if (!out.overflow)
			mask_needle(m, SPREAD_LINES, out.data, out.len);
		while (out.len % 4 != 0)
			buf_putc(&out, '=');
		if (!out.overflow)
			mask_needle(m, SPREAD_LINES, out.data, out.len);
	}
	buf_release(&out);
}

/* Whether the character needs no quoting: letters, digits, and those in
 * `safe`. */
static bool
is_plain(char c, const char *safe)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	    (c >= '0' && c <= '9') || (c != '\0' && strchr(safe, c) != NULL);
}

static void
put_percent(struct buf *out, char c, const char *safe)
{
	if (is_plain(c, safe))
		buf_putc(out, c);
	else
		buf_printf(out, "%%%02X", (unsigned)(unsigned char)c);
}

static char
to_lower(char c)
{
	return (char)(c >= 'A' && c <= 'F' ? c - 'A' + 'a' : c);
}

static void
put_form(struct buf *out, char c, const char *safe)
{
	if (c == ' ')
		buf_putc(out, '+');
	else
		put_percent(out, c, safe);
}

/* Writes control bytes and `quoted` ones with a backslash, others unchanged. */
static void
put_escaped(struct buf *out, char c, const char *quoted)
{
	static const char plain[] = "\n\r\t\b\f", named[] = "nrtbf";
	const char *at = c == '\0' ? NULL : strchr(plain, c);

	if (at != NULL)
		buf_printf(out, "\\%c", named[at - plain]);
	else if (c != '\0' && strchr(quoted, c) != NULL)
		buf_printf(out, "\\%c", c);
	else if ((unsigned char)c < 0x20)
		buf_printf(out, "\\u%04x", (unsigned)c);
	else
		buf_putc(out, c);
}

/* Writes the form of bash between $' and '; with `octal`, all but ASCII in
 * octal. */
static void
put_ansi(struct buf *out, char c, const char *octal)
{
	static const char plain[] = "\n\r\t\b\f\a\v\033'\\",
			  named[] = "nrtbfavE'\\";
	const char *at = c == '\0' ? NULL : strchr(plain, c);
	const unsigned char byte = (unsigned char)c;

	if (at != NULL)
		buf_printf(out, "\\%c", named[at - plain]);
	else if (byte < 0x20 || byte == 0x7f || (byte > 0x7f && *octal != '\0'))
		buf_printf(out, "\\%03o", (unsigned)byte);
	else
		buf_putc(out, c);
}

/* Writes every byte except `safe` ones with a backslash. */
static void
put_backslash(struct buf *out, char c, const char *safe)
{
	if (!is_plain(c, safe) && (unsigned char)c < 0x80)
		buf_putc(out, '\\');
	buf_putc(out, c);
}

/* printf %q of bash: # and ~ only where they are special. */
static void
put_word(struct buf *out, char c, const char *safe)
{
	const char last = out->len == 0 ? '\0' : out->data[out->len - 1];

	if ((c == '#' && last != '\0') ||
	    (c == '~' && last != '\0' && last != ':' && last != '='))
		buf_putc(out, c);
	else
		put_backslash(out, c, safe);
}

/* Writes only `quoted` bytes with a backslash. */
static void
put_quoted(struct buf *out, char c, const char *quoted)
{
	if (c != '\0' && strchr(quoted, c) != NULL)
		buf_putc(out, '\\');
	buf_putc(out, c);
}

static void
put_single(struct buf *out, char c, const char *how)
{
	if (c == '\'')
		buf_puts(out, how);
	else
		buf_putc(out, c);
}

/* Writes each run of `blanks` as one blank, as an unquoted $NAME does. */
static void
put_words(struct buf *out, char c, const char *blanks)
{
	if (c == '\0' || strchr(blanks, c) == NULL)
		buf_putc(out, c);
	else if (out->len > 0 && out->data[out->len - 1] != ' ')
		buf_putc(out, ' ');
}

/* Drops `unwanted` bytes. */
static void
put_joined(struct buf *out, char c, const char *unwanted)
{
	if (c == '\0' || strchr(unwanted, c) == NULL)
		buf_putc(out, c);
}

static const struct quoter {
	void (*put)(struct buf *, char, const char *);
	const char *which;
} quoters[] = {
	{ put_percent, "-._~" },                 /* RFC 3986 */
	{ put_percent, "-._~/" },                /* in a path */
	{ put_percent, "-._~!*'()" },            /* encodeURIComponent() */
	{ put_percent, "-._~!*'();,/?:@&=+$#" }, /* encodeURI() */
	{ put_percent, "-._~!*'()%$&+," }, /* a password in a URL (WHATWG) */
	{ put_form, "-._~" },              /* in a query */
	{ put_form, "-._" },               /* in a form, as PHP does */
	{ put_form, "-._*" },              /* in a form, as browsers do */
	{ put_escaped, "\"\\" },           /* JSON */
	{ put_escaped, "\"\\/" },          /* JSON with slashes escaped */
	{ put_escaped, "'\\" },            /* '…' of Python and others */
	{ put_ansi, "" },                  /* $'…' of bash */
	{ put_ansi, "octal" },             /* $'…' of bash in the C locale */
	{ put_backslash, "-._/:=@%+," },   /* with all special characters
					  * quoted */
	{ put_word, "-._/:=@%+" },         /* printf %q */
	{ put_quoted, "\"\\$`" },          /* "…" of declare -p */
	{ put_single, "'\\''" },           /* '…' */
	{ put_single, "'\"'\"'" },         /* '…' of Python */
	{ put_words, " \t\n" },            /* echo $NAME */
	{ put_joined, "\r\n" },            /* tr -d '\r\n' */
};

static void
add_quoted(struct mask *m, const struct quoter *how, const char *s, size_t len)
{
	struct buf out;
	size_t i;

	buf_init(&out, ENCODED_MAX);
	for (i = 0; i < len; i++)
		how->put(&out, s[i], how->which);
	while (how->put == put_words && out.len > 0 &&
	    out.data[out.len - 1] == ' ')
		out.len--;
	if (!out.overflow)
		mask_needle(m, SPREAD_NONE, out.data, out.len);
	if (how->put == put_percent || how->put == put_form) {
		/* each % is an escape: a % of the value is %25 */
		for (i = 0; i + 2 < out.len; i++)
			if (out.data[i] == '%') {
				out.data[i + 1] = to_lower(out.data[i + 1]);
				out.data[i + 2] = to_lower(out.data[i + 2]);
			}
		if (!out.overflow)
			mask_needle(m, SPREAD_NONE, out.data, out.len);
	}
	buf_release(&out);
}

size_t
mask_character(const char *s, size_t len, uint32_t *out)
{
	const unsigned char *at = (const unsigned char *)s;
	size_t n = at[0] >= 0xf0 ? 4 : (at[0] >= 0xe0 ? 3 : 2), i;

	*out = at[0];
	if (at[0] < 0xc2 || at[0] > 0xf4 || len < n)
		return 1;
	*out = at[0] & (0xffU >> (n + 1));
	for (i = 1; i < n; i++) {
		if ((at[i] & 0xc0) != 0x80) {
			*out = at[0];
			return 1;
		}
		*out = *out << 6 | (at[i] & 0x3fU);
	}
	return n;
}

enum json {
	JSON_ASCII = 1 << 0, /* everything else is escaped */
	JSON_HTML = 1 << 1,  /* so is HTML markup */
	JSON_SLASH = 1 << 2,
	JSON_QUOTE = 1 << 3, /* so are characters with a meaning in strings */
	JSON_UPPER = 1 << 4, /* in upper case */
};

static bool
is_escaped(uint32_t c, unsigned flags)
{
	return (c > 0x7f && (flags & JSON_ASCII) != 0) ||
	    ((flags & JSON_HTML) != 0 &&
		(c == '<' || c == '>' || c == '&' || c == 0x2028 ||
		    c == 0x2029)) ||
	    ((flags & JSON_QUOTE) != 0 && c != 0 && c < 0x80 &&
		strchr("\"&'+<>`", (int)c) != NULL);
}

static void
put_unicode(struct buf *out, uint32_t c, unsigned flags)
{
	if (c > 0xffff) {
		put_unicode(out, 0xd800 + ((c - 0x10000) >> 10), flags);
		put_unicode(out, 0xdc00 + ((c - 0x10000) & 0x3ff), flags);
	} else if ((flags & JSON_UPPER) != 0) {
		buf_printf(out, "\\u%04X", (unsigned)c);
	} else {
		buf_printf(out, "\\u%04x", (unsigned)c);
	}
}

/* Adds JSON that has more \uXXXX escapes than required. */
static void
add_json(struct mask *m, const char *s, size_t len, unsigned flags)
{
	struct buf out;
	uint32_t c;
	size_t i, n;

	buf_init(&out, ENCODED_MAX);
	for (i = 0; i < len; i += n) {
		n = mask_character(s + i, len - i, &c);
		if (is_escaped(c, flags))
			put_unicode(&out, c, flags);
		else if (n > 1)
			buf_add(&out, s + i, n);
		else
			put_escaped(&out, s[i],
			    (flags & JSON_SLASH) != 0 ? "\"\\/" : "\"\\");
	}
	if (!out.overflow)
		mask_needle(m, SPREAD_NONE, out.data, out.len);
	buf_release(&out);
}

/* Adds a text in JSON that is a string of JSON itself. */
static void
add_nested_json(struct mask *m, const char *s, size_t len)
{
	struct buf once, twice;
	size_t i;

	buf_init(&once, ENCODED_MAX);
	buf_init(&twice, ENCODED_MAX);
	for (i = 0; i < len; i++)
		put_escaped(&once, s[i], "\"\\");
	for (i = 0; i < once.len; i++)
		put_escaped(&twice, once.data[i], "\"\\");
	if (!once.overflow && !twice.overflow)
		mask_needle(m, SPREAD_NONE, twice.data, twice.len);
	buf_release(&once);
	buf_release(&twice);
}

static void
add_hex(struct mask *m, const char *s, size_t len, const char *digits)
{
	struct buf out;
	size_t i;

	buf_init(&out, ENCODED_MAX);
	for (i = 0; i < len; i++) {
		buf_putc(&out, digits[(unsigned char)s[i] >> 4]);
		buf_putc(&out, digits[(unsigned char)s[i] & 15]);
	}
	if (!out.overflow)
		mask_needle(m, SPREAD_BYTES, out.data, out.len);
	buf_release(&out);
}

void
mask_forms(struct mask *m, const char *value, size_t len)
{
	size_t i;

	for (i = 0; i < 3; i++) {
		add_base64(m, value, len, i, b64_plain);
		add_base64(m, value, len, i, b64_url);
	}
	add_hex(m, value, len, "0123456789abcdef");
	add_hex(m, value, len, "0123456789ABCDEF");
	add_json(m, value, len, JSON_ASCII);
	add_json(m, value, len, JSON_ASCII | JSON_SLASH);
	add_json(m, value, len, JSON_ASCII | JSON_UPPER);
	add_json(m, value, len, JSON_ASCII | JSON_UPPER | JSON_QUOTE);
	add_json(m, value, len, JSON_HTML);
	add_nested_json(m, value, len);
	for (i = 0; i < sizeof(quoters) / sizeof(quoters[0]); i++)
		add_quoted(m, &quoters[i], value, len);
	mask_quotes(m, value, len);
}
