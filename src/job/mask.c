/* SPDX-License-Identifier: ISC */
#include "job/mask.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define BUCKETS 4096
#define NEEDLE_MAX ((size_t)1 << 20)
#define ENCODED_MAX ((size_t)1 << 20)
#define HELD_MAX ((size_t)1 << 22)

struct needle {
	struct needle *next; /* of the bucket */
	const char *text;
	size_t len;
};

struct mask {
	struct arena *a;
	struct needle *bucket[BUCKETS]; /* by the first MASK_MIN bytes */
	bool first[256];
	struct buf held; /* not decided, or shown but part of a decision */
	size_t shown;    /* of held: already appended */
	size_t covered;  /* of held: hidden behind a mark that was appended */
};

struct mask *
mask_open(struct arena *a)
{
	struct mask *m = arena_alloc(a, 1, sizeof(*m));

	m->a = a;
	buf_init(&m->held, HELD_MAX);
	return m;
}

void
mask_close(struct mask *m)
{
	if (m != NULL)
		buf_release(&m->held);
}

static size_t
bucket_of(const char *text)
{
	uint32_t head;

	(void)memcpy(&head, text, sizeof(head));
	return (head * UINT32_C(2654435761)) >> 20;
}

static void
needle_add(struct mask *m, const char *text, size_t len)
{
	struct needle *n, **bucket;

	if (len < MASK_MIN || len > NEEDLE_MAX)
		return;
	bucket = &m->bucket[bucket_of(text)];
	for (n = *bucket; n != NULL; n = n->next)
		if (n->len == len && memcmp(n->text, text, len) == 0)
			return;
	n = arena_alloc(m->a, 1, sizeof(*n));
	n->text = arena_strndup(m->a, text, len);
	n->len = len;
	n->next = *bucket;
	*bucket = n;
	m->first[(unsigned char)text[0]] = true;
}

static const char b64_plain[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
static const char b64_url[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/* The characters of base64 that depend on these bytes alone, when `lead`
 * others come before them. */
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
		needle_add(m, out.data, out.len);
	if (lead == 0 && at < bits) { /* as it ends when nothing follows */
		value = 0;
		for (i = at; i < at + 6; i++)
			value = value << 1 |
			    (i >= bits ?
				    0 :
				    ((unsigned char)s[i / 8] >> (7 - i % 8)) &
					1);
		buf_putc(&out, alphabet[value]);
		if (!out.overflow)
			needle_add(m, out.data, out.len);
		while (out.len % 4 != 0)
			buf_putc(&out, '=');
		if (!out.overflow)
			needle_add(m, out.data, out.len);
	}
	buf_release(&out);
}

/* As base64(1) and openssl(1) break it into lines. */
static void
add_base64_lines(struct mask *m, const char *s, size_t len)
{
	static const size_t widths[] = { 76, 64 };
	size_t i, at, bytes;

	for (i = 0; i < sizeof(widths) / sizeof(widths[0]); i++) {
		bytes = widths[i] / 4 * 3;
		for (at = 0; len > bytes && at < len; at += bytes)
			add_base64(m, s + at,
			    len - at < bytes ? len - at : bytes, 0, b64_plain);
	}
}

/* Those that may be taken for letters, and those to be quoted, by who asks. */
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

static void
put_percent_lower(struct buf *out, char c, const char *safe)
{
	if (is_plain(c, safe))
		buf_putc(out, c);
	else
		buf_printf(out, "%%%02x", (unsigned)(unsigned char)c);
}

static void
put_form(struct buf *out, char c, const char *safe)
{
	if (c == ' ')
		buf_putc(out, '+');
	else
		put_percent(out, c, safe);
}

/* Control bytes and `quoted` ones behind a backslash; others as they are. */
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

/* Every byte but `safe` ones behind a backslash: printf %q. */
static void
put_backslash(struct buf *out, char c, const char *safe)
{
	if (!is_plain(c, safe) && (unsigned char)c < 0x80)
		buf_putc(out, '\\');
	buf_putc(out, c);
}

/* Only `quoted` ones behind a backslash. */
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

static const struct quoter {
	void (*put)(struct buf *, char, const char *);
	const char *which;
} quoters[] = {
	{ put_percent, "-._~" },         /* RFC 3986 */
	{ put_percent_lower, "-._~" },   /* in lower case */
	{ put_percent, "-._~/" },        /* in a path */
	{ put_percent, "-._~!*'()" },    /* encodeURIComponent() */
	{ put_form, "-._~" },            /* in a query */
	{ put_form, "-._*" },            /* in a form, as browsers do */
	{ put_escaped, "\"\\" },         /* JSON */
	{ put_escaped, "\"\\/" },        /* JSON of PHP */
	{ put_escaped, "'\\" },          /* $'…' of bash -x */
	{ put_backslash, "-._/:=@%+," }, /* printf %q */
	{ put_quoted, "\"\\$`" },        /* "…" of declare -p */
	{ put_single, "'\\''" },         /* '…' */
	{ put_single, "'\"'\"'" },       /* '…' of Python */
};

void
mask_add(struct mask *m, const char *value, size_t len)
{
	const char *line, *end;
	struct buf out;
	size_t i, k, n;

	if (len < MASK_MIN)
		return;
	needle_add(m, value, len);
	for (i = 0; i < 3; i++) {
		add_base64(m, value, len, i, b64_plain);
		add_base64(m, value, len, i, b64_url);
	}
	add_base64_lines(m, value, len);
	buf_init(&out, ENCODED_MAX);
	for (i = 0; i < sizeof(quoters) / sizeof(quoters[0]); i++) {
		buf_clear(&out);
		for (k = 0; k < len; k++)
			quoters[i].put(&out, value[k], quoters[i].which);
		if (!out.overflow)
			needle_add(m, out.data, out.len);
	}
	buf_release(&out);
	for (line = value; line < value + len; line = end + 1) {
		end = memchr(line, '\n', (size_t)(value + len - line));
		if (end == NULL)
			end = value + len;
		n = (size_t)(end - line);
		if (n > 0 && line[n - 1] == '\r')
			n--;
		needle_add(m, line, n);
	}
}

/* The longest secret that stands at `at`, 0 if there is none. `open` tells
 * whether what is left may be the beginning of a longer one. */
static size_t
match(const struct mask *m, const char *at, size_t left, bool *open)
{
	const struct needle *n;
	size_t longest = 0, i;

	*open = false;
	if (!m->first[(unsigned char)at[0]])
		return 0;
	if (left < MASK_MIN) {
		for (i = 0; i < BUCKETS && !*open; i++)
			for (n = m->bucket[i]; n != NULL && !*open; n = n->next)
				*open = memcmp(n->text, at, left) == 0;
		return 0;
	}
	for (n = m->bucket[bucket_of(at)]; n != NULL; n = n->next) {
		if (n->len > left)
			*open = *open || memcmp(n->text, at, left) == 0;
		else if (n->len > longest && memcmp(n->text, at, n->len) == 0)
			longest = n->len;
	}
	return longest;
}

enum last { MORE_COMES, STREAM_ENDS };

static void
scan(struct mask *m, enum last last, struct buf *out)
{
	const char *data = m->held.data;
	size_t i, len, plain = 0, end, from;
	bool open;

	from = m->held.len; /* where the plain run that is due began */
	for (i = 0; i < m->held.len; i++) {
		len = match(m, data + i, m->held.len - i, &open);
		if (open && last == MORE_COMES)
			break;
		end = i + len;
		if (len > 0 && end > m->covered) {
			if (plain > 0)
				buf_add(out, data + from, plain);
			plain = 0;
			if (end > m->shown &&
			    (i >= m->covered || m->covered <= m->shown))
				buf_puts(out, "***");
			m->covered = end;
		}
		if (i < m->covered || i < m->shown)
			continue;
		if (plain++ == 0)
			from = i;
	}
	if (plain > 0)
		buf_add(out, data + from, plain);
	buf_drop(&m->held, i);
	m->covered -= i < m->covered ? i : m->covered;
	m->shown -= i < m->shown ? i : m->shown;
}

void
mask_feed(struct mask *m, const char *data, size_t len, struct buf *out)
{
	buf_add(&m->held, data, len);
	scan(m, MORE_COMES, out);
}

bool
mask_held(const struct mask *m)
{
	return m->held.len < MASK_SURE && m->held.len > m->shown &&
	    m->held.len > m->covered;
}

void
mask_flush(struct mask *m, struct buf *out)
{
	size_t from = m->shown > m->covered ? m->shown : m->covered;

	if (!mask_held(m))
		return;
	buf_add(out, m->held.data + from, m->held.len - from);
	m->shown = m->held.len;
}

void
mask_finish(struct mask *m, struct buf *out)
{
	scan(m, STREAM_ENDS, out);
	m->shown = 0;
	m->covered = 0;
}
