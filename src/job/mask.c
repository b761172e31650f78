/* SPDX-License-Identifier: ISC */
#include "job/mask.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "job/mask_inner.h"

#define BUCKETS 4096
#define NEEDLE_MAX ((size_t)1 << 20)
#define HELD_MAX ((size_t)1 << 22)
#define ESC '\033'
#define COLOR_MAX 32  /* bytes of a control sequence */
#define BLANKS_MAX 64 /* maximum indentation of a line */

struct needle {
	struct needle *next; /* in the bucket */
	const char *text;
	size_t len;
};

struct table {
	struct needle *bucket[BUCKETS]; /* by the first MASK_MIN bytes */
	bool first[256];
};

struct mask {
	struct arena *a;
	struct table table[SPREAD__MAX];
	struct buf held; /* undecided, or already shown but part of a
			  * decision */
	size_t shown;    /* bytes of held: already appended */
	bool colored;    /* held contains control sequences */
	size_t covered;  /* bytes of held: hidden by a mark that was appended */
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

void
mask_needle(struct mask *m, enum spread spread, const char *text, size_t len)
{
	struct table *table = &m->table[spread];
	struct needle *n, **bucket;

	if (len < MASK_MIN || len > NEEDLE_MAX)
		return;
	bucket = &table->bucket[bucket_of(text)];
	for (n = *bucket; n != NULL; n = n->next)
		if (n->len == len && memcmp(n->text, text, len) == 0)
			return;
	n = arena_alloc(m->a, 1, sizeof(*n));
	n->text = arena_strndup(m->a, text, len);
	n->len = len;
	n->next = *bucket;
	*bucket = n;
	table->first[(unsigned char)text[0]] = true;
}

void
mask_add(struct mask *m, const char *value, size_t len)
{
	const char *line, *end;
	size_t n;

	if (len < MASK_MIN)
		return;
	mask_needle(m, SPREAD_NONE, value, len);
	mask_forms(m, value, len);
	for (n = len; n > 0 && (value[n - 1] == '\n' || value[n - 1] == '\r');)
		n--; /* as $(...) drops them */
	if (n >= MASK_MIN && n < len)
		mask_forms(m, value, n);
	for (line = value; line < value + len; line = end + 1) {
		end = memchr(line, '\n', (size_t)(value + len - line));
		if (end == NULL)
			end = value + len;
		n = (size_t)(end - line);
		if (n > 0 && line[n - 1] == '\r')
			n--;
		mask_needle(m, SPREAD_NONE, line, n);
	}
}

static size_t
blanks_length(const char *at, size_t left)
{
	size_t n = 0;

	while (n < left && n < BLANKS_MAX && (at[n] == ' ' || at[n] == '\t'))
		n++;
	return n;
}

static size_t
separator_length(const char *at, size_t left)
{
	return left > 0 && at[0] != '\0' && strchr(":,;-", at[0]) != NULL;
}

/* Length of a line break, or of one written as an escape. */
static size_t
line_break(const char *at, size_t left)
{
	size_t n = 0;

	if (left > 0 && at[0] == '\\') {
		if (left > 3 && memcmp(at, "\\r\\n", 4) == 0)
			return 4;
		if (left > 1 && at[1] == 'n')
			return 2;
		return left == 1 || (left < 4 && at[1] == 'r') ? left : 0;
	}
	n += n < left && at[n] == '\r';
	n += n < left && at[n] == '\n';
	return n;
}

/* Length of a control sequence such as ESC [ 3 1 m, which may stand between any
 * two characters: tools color parts of a text.  Everything that is left if more
 * may follow, 0 if there is none. */
static size_t
color_length(const char *at, size_t left)
{
	size_t n = 2;

	if (left == 0 || at[0] != ESC)
		return 0;
	if (left > 1 && at[1] == '(')
		return left == 2 ? 2 : 3; /* ESC ( B */
	if (left > 1 && at[1] != '[')
		return 0;
	while (n < left && n < COLOR_MAX && at[n] >= 0x20 && at[n] < 0x40)
		n++;
	if (n >= left)
		return left;
	return n < COLOR_MAX && at[n] >= 0x40 && at[n] <= 0x7e ? n + 1 : 0;
}

/* Length of the text without control sequences that may separate two characters
 * of such a needle; everything that is left if more may follow.  No character of
 * a needle looks like it. */
static size_t
separators_length(enum spread spread, const char *at, size_t left)
{
	size_t n = 0, broken;

	if (spread == SPREAD_BYTES) {
		n += separator_length(at, left);
		n += blanks_length(at + n, left - n);
	}
	broken = line_break(at + n, left - n);
	n += broken;
	if (broken > 0)
		n += blanks_length(at + n, left - n);
	if (broken > 0 && spread == SPREAD_BYTES)
		n += separator_length(at + n, left - n);
	if (spread == SPREAD_BYTES && left - n > 0 && at[n] == '\\')
		n += left - n == 1 ? 1 : (at[n + 1] == 'x' ? 2 : 0);
	else if (spread == SPREAD_BYTES && left - n > 1 && at[n] == '0' &&
	    at[n + 1] == 'x')
		n += 2;
	return n;
}

/* Length of the control sequences. */
static size_t
colors_length(const char *at, size_t left)
{
	size_t n = 0, len;

	while (n < left && (len = color_length(at + n, left - n)) > 0)
		n += len;
	return n;
}

static size_t
gap_length(enum spread spread, const char *at, size_t left)
{
	size_t n = separators_length(spread, at, left), len;

	while (n < left && (len = colors_length(at + n, left - n)) > 0) {
		n += len;
		n += separators_length(spread, at + n, left - n);
	}
	return n;
}

/* What a gap can begin with: most bytes are none of these. */
static const bool gap_begins[256] = { [' '] = true,
	['\t'] = true,
	['\r'] = true,
	['\n'] = true,
	['\\'] = true,
	[':'] = true,
	[','] = true,
	[';'] = true,
	['-'] = true,
	['0'] = true,
	[ESC] = true };

/* The gap before character `k` of a needle. */
static size_t
gap_before(enum spread spread, size_t k, const char *at, size_t left)
{
	if (k == 0 || left == 0 || !gap_begins[(unsigned char)at[0]])
		return 0;
	if (spread == SPREAD_NONE)
		return colors_length(at, left);
	return gap_length(k % 2 == 0 ? spread : SPREAD_LINES, at, left);
}

/* Whether the 0 at the end of the data may begin a 0x. */
static bool
is_prefix(enum spread spread, size_t k, const char *at, size_t left)
{
	return spread == SPREAD_BYTES && k > 0 && k % 2 == 0 && at[0] == '0' &&
	    left == 1;
}

/* Number of equal bytes at the beginning. */
static size_t
bytes_equal(const char *one, const char *two, size_t max)
{
	size_t i = 0;

	while (i < max && one[i] == two[i])
		i++;
	return i;
}

/* Like needle_at(), for a needle that only control sequences separate. */
static size_t
plain_at(const struct needle *n, const char *at, size_t left, bool *open)
{
	size_t i = 0, k = 0, len;

	if (n->len <= left && memcmp(n->text, at, n->len) == 0)
		return n->len;
	for (;;) {
		len = n->len - k < left - i ? n->len - k : left - i;
		len = bytes_equal(n->text + k, at + i, len);
		k += len;
		i += len;
		if (k == n->len)
			return i;
		if (i < left &&
		    ((len = color_length(at + i, left - i)) == 0 || k == 0))
			return 0;
		i += i < left ? len : 0;
		if (i == left) {
			*open = true;
			return 0;
		}
	}
}

/* Number of bytes that the needle occupies at `at`, 0 if it does not match;
 * sets *open if it may match once more bytes arrive. */
static size_t
needle_at(const struct needle *n, enum spread spread, const char *at,
    size_t left, bool *open)
{
	size_t i = 0, k;

	if (spread == SPREAD_NONE)
		return plain_at(n, at, left, open);
	for (k = 0; k < n->len && i < left; k++, i++) {
		if (at[i] != n->text[k] || at[i] == '0')
			i += gap_before(spread, k, at + i, left - i);
		if (i == left)
			break;
		if (at[i] != n->text[k]) {
			if (is_prefix(spread, k, at + i, left - i))
				*open = true;
			return 0;
		}
	}
	if (k == n->len)
		return i;
	*open = true;
	return 0;
}

/* The first characters of a needle that may begin at `at`. */
static bool
head_at(enum spread spread, const char *at, size_t left, char *out)
{
	size_t i = 0, k;

	for (k = 0; k < MASK_MIN; k++) {
		i += gap_before(spread, k, at + i, left - i);
		if (i == left)
			return false;
		out[k] = at[i++];
	}
	return true;
}

/* The longest match in a bucket. */
static size_t
chain_at(const struct needle *n, enum spread spread, const char *at,
    size_t left, bool *open)
{
	size_t longest = 0, len;

	for (; n != NULL; n = n->next) {
		len = needle_at(n, spread, at, left, open);
		if (len > longest)
			longest = len;
	}
	return longest;
}

/* Whether a control sequence may follow one of the first characters. */
static bool
is_colored(const char *at)
{
	size_t i;

	for (i = 1; i < MASK_MIN; i++)
		if (at[i] == ESC)
			return true;
	return false;
}

/* Like match(), for one table. */
static size_t
match_spread(const struct mask *m, enum spread spread, const char *at,
    size_t left, bool *open)
{
	const struct table *table = &m->table[spread];
	char head[MASK_MIN];
	size_t longest = 0, len, i;

	if (!table->first[(unsigned char)at[0]])
		return 0;
	if (spread == SPREAD_NONE && left >= MASK_MIN) {
		longest = chain_at(table->bucket[bucket_of(at)], spread, at,
		    left, open);
		if (!m->colored || !is_colored(at))
			return longest;
	}
	if (!head_at(spread, at, left, head)) {
		for (i = 0; i < BUCKETS && !*open; i++)
			(void)chain_at(table->bucket[i], spread, at, left,
			    open);
		return longest;
	}
	len = chain_at(table->bucket[bucket_of(head)], spread, at, left, open);
	return len > longest ? len : longest;
}

/* Length of the longest secret at `at`, 0 if there is none.  Sets *open if the
 * rest may be the beginning of a longer one, and *spread to how it is
 * spread. */
static size_t
secret_match(const struct mask *m, const char *at, size_t left, bool *open,
    enum spread *spread)
{
	size_t longest = 0, len;
	unsigned i;

	*open = false;
	*spread = SPREAD_NONE;
	for (i = 0; i < SPREAD__MAX; i++) {
		len = match_spread(m, (enum spread)i, at, left, open);
		if (len > longest) {
			longest = len;
			*spread = (enum spread)i;
		}
	}
	return longest;
}

/* Writes a mark for each further line of the hidden text, so that the number of
 * lines remains. */
static void
marks_write(struct buf *out, const char *at, const char *end)
{
	for (; at < end; at++)
		if (*at == '\n')
			buf_puts(out, "\n***");
}

enum last { MORE_COMES, STREAM_ENDS };

/* Covers a match at `i`, part of which may already be shown or covered. */
static void
match_cover(struct mask *m, size_t i, size_t end, enum spread spread,
    struct buf *out)
{
	const size_t seen = m->covered > m->shown ? m->covered : m->shown;
	const size_t fresh = seen > i ? seen : i;

	if (end > m->shown && (i >= m->covered || m->covered <= m->shown))
		buf_puts(out, "***");
	if (spread != SPREAD_NONE && end > fresh)
		marks_write(out, m->held.data + fresh, m->held.data + end);
	m->covered = end;
}

static void
input_scan(struct mask *m, enum last last, struct buf *out)
{
	const char *data = m->held.data;
	size_t i, len, plain = 0, from;
	enum spread spread;
	bool open;

	m->colored = m->held.len > 0 && memchr(data, ESC, m->held.len) != NULL;
	from = m->held.len; /* where the pending plain run begins */
	for (i = 0; i < m->held.len; i++) {
		len = secret_match(m, data + i, m->held.len - i, &open,
		    &spread);
		if (open && last == MORE_COMES)
			break;
		if (len > 0 && i + len > m->covered) {
			if (plain > 0)
				buf_add(out, data + from, plain);
			plain = 0;
			match_cover(m, i, i + len, spread, out);
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
	input_scan(m, MORE_COMES, out);
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
	input_scan(m, STREAM_ENDS, out);
	m->shown = 0;
	m->covered = 0;
}
