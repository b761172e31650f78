/* SPDX-License-Identifier: ISC */
#include "core/glob.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define BITS 64
#define WORDS_MAX (GLOB_MAX / BITS + 1)
#define NAME_WORK 16 /* to look at a name, however short */
#define WORD_WORK 2  /* for a byte of a name and a word of the pattern */

/* A pattern; bit i is its i-th element, and the place before it.  Compiled for
 * the match at hand: a process has one thread. */
static struct {
	size_t elements;
	size_t words;
	uint64_t byte[256][WORDS_MAX]; /* elements that are this byte */
	uint64_t any[WORDS_MAX];       /* ? */
	uint64_t after_any[WORDS_MAX];
	uint64_t star[WORDS_MAX];
	uint64_t stars[WORDS_MAX];
} glob;

struct places {
	uint64_t bits[WORDS_MAX];
};

static void
bit_set(uint64_t *bits, size_t i)
{
	bits[i / BITS] |= UINT64_C(1) << i % BITS;
}

static bool
bit_has(const uint64_t *bits, size_t i)
{
	return (bits[i / BITS] >> i % BITS & 1) != 0;
}

static void
glob_clear(size_t len)
{
	const size_t size = (len / BITS + 1) * sizeof(uint64_t);
	size_t i;

	glob.words = len / BITS + 1;
	glob.elements = 0;
	for (i = 0; i < sizeof(glob.byte) / sizeof(glob.byte[0]); i++)
		(void)memset(glob.byte[i], 0, size);
	(void)memset(glob.any, 0, size);
	(void)memset(glob.after_any, 0, size);
	(void)memset(glob.star, 0, size);
	(void)memset(glob.stars, 0, size);
}

/* Reads a pattern of at most GLOB_MAX bytes.  A run of stars is one element, so
 * that no star follows another. */
static void
glob_read(const char *pattern)
{
	size_t len;

	glob_clear(strlen(pattern));
	for (; *pattern != '\0'; pattern += len, glob.elements++) {
		len = strspn(pattern, "*");
		if (len > 0) {
			bit_set(len == 1 ? glob.star : glob.stars,
			    glob.elements);
			continue;
		}
		len = 1;
		if (*pattern == '?') {
			bit_set(glob.any, glob.elements);
			bit_set(glob.after_any, glob.elements + 1);
		} else {
			bit_set(glob.byte[(unsigned char)*pattern],
			    glob.elements);
		}
	}
}

/* A star matches the empty text. */
static void
stars_skip(struct places *at)
{
	uint64_t open, carry = 0;
	size_t i;

	for (i = 0; i < glob.words; i++) {
		open = at->bits[i] & (glob.star[i] | glob.stars[i]);
		at->bits[i] |= open << 1 | carry;
		carry = open >> (BITS - 1);
	}
}

/* Moves all places over a byte; whether one is left. */
static bool
byte_take(struct places *at, unsigned char c)
{
	/* ? stands for a character, whose other bytes follow the first */
	const uint64_t inner = (c & 0xc0) == 0x80 ? UINT64_MAX : 0;
	const uint64_t in_name = c == '/' ? 0 : UINT64_MAX;
	uint64_t was, moved, stayed, carry = 0, left = 0;
	size_t i;

	for (i = 0; i < glob.words; i++) {
		was = at->bits[i];
		moved = was &
		    (glob.byte[c][i] | (glob.any[i] & in_name & ~inner));
		stayed = was &
		    ((glob.star[i] & in_name) | glob.stars[i] |
			(glob.after_any[i] & inner));
		at->bits[i] = stayed | moved << 1 | carry;
		carry = moved >> (BITS - 1);
		left |= at->bits[i];
	}
	stars_skip(at);
	return left != 0;
}

/* Whether the rest of every name matches. */
static bool
is_decided(const struct places *at)
{
	return glob.elements > 0 && bit_has(glob.stars, glob.elements - 1) &&
	    bit_has(at->bits, glob.elements - 1);
}

/* Matches a name with the pattern that was read. */
static enum glob_found
name_match(const char *name, size_t *budget)
{
	const size_t price = WORD_WORK * glob.words;
	struct places at = { .bits = { 1 } };

	stars_skip(&at);
	for (; *name != '\0'; name++) {
		if (is_decided(&at))
			return GLOB_ONE;
		if (*budget < price)
			return GLOB_UNDECIDED;
		*budget -= price;
		if (!byte_take(&at, (unsigned char)*name))
			return GLOB_NONE;
	}
	return bit_has(at.bits, glob.elements) ? GLOB_ONE : GLOB_NONE;
}

bool
glob_matches(const char *pattern, const char *s)
{
	size_t budget = SIZE_MAX;

	if (strlen(pattern) > GLOB_MAX)
		return false;
	glob_read(pattern);
	return name_match(s, &budget) == GLOB_ONE;
}

static int
name_order(const void *left, const void *right)
{
	const char *const *a = left, *const *b = right;

	return strcmp(*a, *b);
}

size_t
glob_names_sort(const char **names, size_t n)
{
	size_t i, kept = 0;

	if (n > 0)
		qsort(names, n, sizeof(*names), name_order);
	for (i = 0; i < n; i++)
		if (kept == 0 || strcmp(names[kept - 1], names[i]) != 0)
			names[kept++] = names[i];
	return kept;
}

/* The first name that does not come before all that begin with these bytes. */
static size_t
prefix_find(const char *const *names, size_t n, const char *prefix, size_t len)
{
	size_t from = 0, to = n, middle;

	while (from < to) {
		middle = from + (to - from) / 2;
		if (strncmp(names[middle], prefix, len) < 0)
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

/* What follows the last wildcard. */
static const char *
tail_of(const char *pattern)
{
	const char *tail = pattern + strlen(pattern);

	while (tail > pattern && tail[-1] != '*' && tail[-1] != '?')
		tail--;
	return tail;
}

static bool
ends_with(const char *name, const char *tail, size_t len)
{
	const size_t all = strlen(name);

	return all >= len && memcmp(name + all - len, tail, len) == 0;
}

/* Names that begin and end otherwise are skipped without a match. */
enum glob_found
glob_find(const char *pattern, const char *const *names, size_t n,
    size_t *budget)
{
	const size_t head = strcspn(pattern, "*?");
	const char *tail = tail_of(pattern);
	const size_t tail_len = strlen(tail);
	size_t i = prefix_find(names, n, pattern, head);
	enum glob_found found = GLOB_NONE;

	if (strlen(pattern) > GLOB_MAX)
		return GLOB_NONE;
	if (pattern[head] == '\0')
		return i < n && strcmp(names[i], pattern) == 0 ? GLOB_ONE :
								 GLOB_NONE;
	if (i < n)
		glob_read(pattern);
	for (; found == GLOB_NONE && i < n; i++) {
		if (strncmp(names[i], pattern, head) != 0)
			break;
		if (*budget < NAME_WORK)
			return GLOB_UNDECIDED;
		*budget -= NAME_WORK;
		if (ends_with(names[i], tail, tail_len))
			found = name_match(names[i], budget);
	}
	return found;
}
