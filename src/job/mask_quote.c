/* SPDX-License-Identifier: ISC */
/* The forms in which languages and web pages quote a secret. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "job/mask_inner.h"

#define QUOTED_MAX ((size_t)1 << 20)

/* How a character without a name is written. */
enum number {
	NUMBER_NONE,     /* as it is */
	NUMBER_X,        /* each byte: \xe9 */
	NUMBER_X_UPPER,  /* \xE9 */
	NUMBER_U,        /* the character: \u00e9 */
	NUMBER_U_BRACES, /* \u{e9} */
	NUMBER_SHORTEST, /* \xe9, \u20ac, \U0001f512 */
	NUMBER_CARET,    /* ^A, M-C */
};

struct style {
	const char *named; /* characters that a letter stands for */
	const char *letters;
	const char *quoted;  /* those that a backslash precedes */
	enum number control; /* how other control characters are written */
	enum number wide;    /* and those beyond ASCII */
};

static const struct style styles[] = {
	/* Python: repr(), of bytes and ascii(), in '…' and in "…" */
	{ "\n\r\t", "nrt", "'\\", NUMBER_X, NUMBER_NONE },
	{ "\n\r\t", "nrt", "\\", NUMBER_X, NUMBER_NONE },
	{ "\n\r\t", "nrt", "'\\", NUMBER_X, NUMBER_X },
	{ "\n\r\t", "nrt", "\\", NUMBER_X, NUMBER_X },
	{ "\n\r\t", "nrt", "'\\", NUMBER_X, NUMBER_SHORTEST },
	{ "\n\r\t", "nrt", "\\", NUMBER_X, NUMBER_SHORTEST },
	/* Go: %q and %+q */
	{ "\a\b\f\n\r\t\v", "abfnrtv", "\"\\", NUMBER_X, NUMBER_NONE },
	{ "\a\b\f\n\r\t\v", "abfnrtv", "\"\\", NUMBER_X, NUMBER_U },
	/* Node: util.inspect(), in '…', "…" and `…` */
	{ "\b\t\n\f\r", "btnfr", "'\\", NUMBER_X_UPPER, NUMBER_NONE },
	{ "\b\t\n\f\r", "btnfr", "\\", NUMBER_X_UPPER, NUMBER_NONE },
	/* Ruby: inspect, of text and of bytes */
	{ "\a\b\t\n\v\f\r\033", "abtnvfre", "\"\\#", NUMBER_U, NUMBER_NONE },
	{ "\a\b\t\n\v\f\r\033", "abtnvfre", "\"\\#", NUMBER_X_UPPER,
	    NUMBER_X_UPPER },
	{ "\t\r\n", "trn", "\"\\", NUMBER_U_BRACES, NUMBER_NONE }, /* Rust */
	{ "", "", "'\"\\", NUMBER_NONE, NUMBER_NONE }, /* addslashes() */
	{ "\n\r\032", "nrZ", "'\"\\", NUMBER_NONE, NUMBER_NONE }, /* MySQL */
	{ "", "", "'\\", NUMBER_NONE, NUMBER_NONE }, /* var_export() */
	{ "", "", "\"\\$@", NUMBER_NONE, NUMBER_NONE },
	{ "", "", "", NUMBER_CARET, NUMBER_CARET }, /* cat -v */
};

/* Adds a needle unless it is too long, and frees the buffer. */
static void
needle_end(struct mask *m, struct buf *out)
{
	if (!out->overflow)
		mask_needle(m, SPREAD_NONE, out->data, out->len);
	buf_release(out);
}

static void
put_point(struct buf *out, uint32_t c, enum number how)
{
	if (how == NUMBER_U_BRACES)
		buf_printf(out, "\\u{%x}", (unsigned)c);
	else if (how == NUMBER_SHORTEST && c < 0x100)
		buf_printf(out, "\\x%02x", (unsigned)c);
	else if (c > 0xffff)
		buf_printf(out, "\\U%08x", (unsigned)c);
	else
		buf_printf(out, "\\u%04x", (unsigned)c);
}

/* Writes a byte as cat -v does. */
static void
put_caret(struct buf *out, unsigned char byte)
{
	if (byte >= 0x80)
		buf_puts(out, "M-");
	byte &= 0x7f;
	if (byte < 0x20 || byte == 0x7f)
		buf_printf(out, "^%c", byte ^ 0x40);
	else
		buf_putc(out, (char)byte);
}

static void
put_number(struct buf *out, const char *s, size_t len, uint32_t c,
    enum number how)
{
	size_t i;

	if (how == NUMBER_U || how == NUMBER_U_BRACES || how == NUMBER_SHORTEST)
		put_point(out, c, how);
	for (i = 0; i < len; i++)
		if (how == NUMBER_X)
			buf_printf(out, "\\x%02x", (unsigned char)s[i]);
		else if (how == NUMBER_X_UPPER)
			buf_printf(out, "\\x%02X", (unsigned char)s[i]);
		else if (how == NUMBER_CARET && s[i] != '\n' && s[i] != '\t')
			put_caret(out, (unsigned char)s[i]);
		else if (how == NUMBER_NONE || how == NUMBER_CARET)
			buf_putc(out, s[i]);
}

/* Whether Ruby writes a backslash before the # at `s`. */
static bool
is_interpolated(const char *s, size_t left)
{
	return left > 1 && (s[1] == '{' || s[1] == '$' || s[1] == '@');
}

static void
add_style(struct mask *m, const struct style *style, const char *s, size_t len)
{
	struct buf out;
	const char *at;
	uint32_t c;
	size_t i, n;

	buf_init(&out, QUOTED_MAX);
	for (i = 0; i < len; i += n) {
		n = mask_character(s + i, len - i, &c);
		at = s[i] == '\0' ? NULL : strchr(style->named, s[i]);
		if (at != NULL)
			buf_printf(&out, "\\%c",
			    style->letters[at - style->named]);
		else if (c >= 0x80 || n > 1)
			put_number(&out, s + i, n, c, style->wide);
		else if (c < 0x20 || c == 0x7f)
			put_number(&out, s + i, n, c, style->control);
		else {
			if (strchr(style->quoted, s[i]) != NULL &&
			    (s[i] != '#' || is_interpolated(s + i, len - i)))
				buf_putc(&out, '\\');
			buf_putc(&out, s[i]);
		}
	}
	needle_end(m, &out);
}

/* Adds the value with each of these quotes doubled, as SQL and CSV do. */
static void
add_doubled(struct mask *m, char quote, const char *s, size_t len)
{
	struct buf out;
	size_t i;

	buf_init(&out, QUOTED_MAX);
	for (i = 0; i < len; i++) {
		if (s[i] == quote)
			buf_putc(&out, quote);
		buf_putc(&out, s[i]);
	}
	needle_end(m, &out);
}

/* The entities of a program. */
struct entities {
	const char *quote; /* of ", NULL = as it is; likewise the others */
	const char *apostrophe;
	const char *slash;
	const char *grave;
	const char *equals;
	enum wide {
		WIDE_NONE,
		WIDE_DECIMAL,
		WIDE_HEX,
		WIDE_HEX_UPPER,
		WIDE_NAMED, /* in Latin 1 */
		WIDE__MAX
	} wide;
};

/* U+00A0 to U+00FF. */
static const char *const latin[] = { "nbsp", "iexcl", "cent", "pound", "curren",
	"yen", "brvbar", "sect", "uml", "copy", "ordf", "laquo", "not", "shy",
	"reg", "macr", "deg", "plusmn", "sup2", "sup3", "acute", "micro",
	"para", "middot", "cedil", "sup1", "ordm", "raquo", "frac14", "frac12",
	"frac34", "iquest", "Agrave", "Aacute", "Acirc", "Atilde", "Auml",
	"Aring", "AElig", "Ccedil", "Egrave", "Eacute", "Ecirc", "Euml",
	"Igrave", "Iacute", "Icirc", "Iuml", "ETH", "Ntilde", "Ograve",
	"Oacute", "Ocirc", "Otilde", "Ouml", "times", "Oslash", "Ugrave",
	"Uacute", "Ucirc", "Uuml", "Yacute", "THORN", "szlig", "agrave",
	"aacute", "acirc", "atilde", "auml", "aring", "aelig", "ccedil",
	"egrave", "eacute", "ecirc", "euml", "igrave", "iacute", "icirc",
	"iuml", "eth", "ntilde", "ograve", "oacute", "ocirc", "otilde", "ouml",
	"divide", "oslash", "ugrave", "uacute", "ucirc", "uuml", "yacute",
	"thorn", "yuml" };

/* The entity of an ASCII character; NULL = it is written as it is. */
static const char *
entity_of(const struct entities *e, char c)
{
	switch (c) {
	case '&':
		return "&amp;";
	case '<':
		return "&lt;";
	case '>':
		return "&gt;";
	case '"':
		return e->quote;
	case '\'':
		return e->apostrophe;
	case '/':
		return e->slash;
	case '`':
		return e->grave;
	case '=':
		return e->equals;
	default:
		return NULL;
	}
}

static void
put_wide(struct buf *out, const char *s, size_t len, uint32_t c, enum wide how)
{
	if (how == WIDE_DECIMAL)
		buf_printf(out, "&#%u;", (unsigned)c);
	else if (how == WIDE_HEX)
		buf_printf(out, "&#x%x;", (unsigned)c);
	else if (how == WIDE_HEX_UPPER)
		buf_printf(out, "&#x%X;", (unsigned)c);
	else if (how == WIDE_NAMED && c >= 0xa0 && c <= 0xff)
		buf_printf(out, "&%s;", latin[c - 0xa0]);
	else
		buf_add(out, s, len);
}

static void
add_entities(struct mask *m, const struct entities *e, const char *s,
    size_t len)
{
	const char *entity;
	struct buf out;
	uint32_t c;
	size_t i, n;

	buf_init(&out, QUOTED_MAX);
	for (i = 0; i < len; i += n) {
		n = mask_character(s + i, len - i, &c);
		if (n > 1)
			put_wide(&out, s + i, n, c, e->wide);
		else if ((entity = entity_of(e, s[i])) != NULL)
			buf_puts(&out, entity);
		else
			buf_putc(&out, s[i]);
	}
	needle_end(m, &out);
}

static void
add_html(struct mask *m, const char *s, size_t len)
{
	static const char *const quotes[] = { NULL, "&quot;", "&#34;",
		"&#x22;" };
	static const char *const apostrophes[] = { NULL, "&#39;", "&#039;",
		"&#x27;", "&apos;" };
	static const struct entities strict[] = {
		{ "&quot;", "&#39;", "&#x2F;", "&#x60;", "&#x3D;", WIDE_NONE },
		{ "&quot;", "&#x27;", NULL, "&#x60;", "&#x3D;", WIDE_NONE },
		{ "&quot;", "&#x27;", "&#x2F;", NULL, NULL, WIDE_NONE },
		{ "&quot;", "&#39;", NULL, "&#96;", NULL, WIDE_NONE },
	};
	struct entities e = { .quote = NULL };
	size_t i, k, wide;

	for (i = 0; i < sizeof(quotes) / sizeof(quotes[0]); i++)
		for (k = 0; k < sizeof(apostrophes) / sizeof(apostrophes[0]);
		     k++)
			for (wide = 0; wide < WIDE__MAX; wide++) {
				e.quote = quotes[i];
				e.apostrophe = apostrophes[k];
				e.wide = (enum wide)wide;
				add_entities(m, &e, s, len);
			}
	for (i = 0; i < sizeof(strict) / sizeof(strict[0]); i++)
		add_entities(m, &strict[i], s, len);
}

void
mask_quotes(struct mask *m, const char *value, size_t len)
{
	size_t i;

	for (i = 0; i < sizeof(styles) / sizeof(styles[0]); i++)
		add_style(m, &styles[i], value, len);
	add_doubled(m, '\'', value, len);
	add_doubled(m, '"', value, len);
	add_html(m, value, len);
}
