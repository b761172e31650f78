/* SPDX-License-Identifier: ISC */
#include "api/log_search.h"

#include <string.h>

enum state {
	TEXT,
	ESCAPE,   /* after ESC */
	SEQUENCE, /* ESC [ and its parameters */
	STRING,   /* ESC ] and the like, until BEL or ESC */
};

struct log_search {
	char *text; /* in lower case */
	size_t len;
	enum state state;
	int64_t began; /* where the escape sequence begins */
	int64_t end;   /* of the pieces added */
	/* the text of the piece in lower case, without sequences, after the
	 * end of the one before it; and where each byte stands in the log */
	char *plain;
	int64_t *at;
	size_t n;
	size_t from;    /* nothing before it can match any more */
	size_t counted; /* the line breaks before it are in `line` */
	int64_t line;
};

static char
lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

struct log_search *
log_search_open(struct arena *a, const char *text, int64_t line)
{
	struct log_search *s = arena_alloc(a, 1, sizeof(*s));
	size_t i, max;

	s->len = strlen(text);
	s->text = arena_strdup(a, text);
	for (i = 0; i < s->len; i++)
		s->text[i] = lower(s->text[i]);
	max = LOG_SEARCH_PIECE + s->len;
	s->plain = arena_alloc(a, max, 1);
	s->at = arena_alloc(a, max, sizeof(*s->at));
	s->line = line;
	return s;
}

/* The state after a byte of a sequence. A line break ends one that was never
 * closed, and ESC begins another. */
static enum state
state_after(enum state state, unsigned char c)
{
	switch (state) {
	case TEXT:
		return c == '\033' ? ESCAPE : TEXT;
	case ESCAPE:
		if (c == '[')
			return SEQUENCE;
		if (c == ']' || c == 'P' || c == 'X' || c == '^' || c == '_')
			return STRING;
		return c == '\033' || (c >= 0x20 && c <= 0x2f) ? ESCAPE : TEXT;
	case SEQUENCE:
		return c == '\033'         ? ESCAPE :
		    c >= 0x20 && c <= 0x3f ? SEQUENCE :
					     TEXT;
	case STRING:
		return c == '\007' || c == '\n' ? TEXT :
		    c == '\033'                 ? ESCAPE :
						  STRING;
	}
	return TEXT;
}

static void
lines_count(struct log_search *s, size_t to)
{
	for (; s->counted < to; s->counted++)
		s->line += s->plain[s->counted] == '\n';
}

/* Drops text that cannot be part of a match any more. */
static void
plain_drop(struct log_search *s)
{
	size_t keep = s->n - s->from, skip;

	if (keep > s->len - 1)
		keep = s->len - 1;
	skip = s->n - keep;
	lines_count(s, skip);
	(void)memmove(s->plain, s->plain + skip, keep);
	(void)memmove(s->at, s->at + skip, keep * sizeof(*s->at));
	s->n = keep;
	s->from = 0;
	s->counted -= skip;
}

void
log_search_add(struct log_search *s, int64_t offset, const void *data,
    size_t len)
{
	const char *c = data;
	enum state was;
	size_t i;

	plain_drop(s);
	for (i = 0; i < len; i++) {
		was = s->state;
		s->state = state_after(was, (unsigned char)c[i]);
		if (was == TEXT && s->state == ESCAPE)
			s->began = offset + (int64_t)i;
		if (s->state != TEXT || (was != TEXT && c[i] != '\n'))
			continue;
		s->plain[s->n] = lower(c[i]);
		s->at[s->n++] = offset + (int64_t)i;
	}
	s->end = offset + (int64_t)len;
}

bool
log_search_next(struct log_search *s, struct log_match *out)
{
	const char *found;
	size_t i;

	found = s->from == s->n ?
	    NULL :
	    memmem(s->plain + s->from, s->n - s->from, s->text, s->len);
	if (found == NULL)
		return false;
	i = (size_t)(found - s->plain);
	lines_count(s, i);
	*out = (struct log_match){ .offset = s->at[i],
		.length = s->at[i + s->len - 1] + 1 - s->at[i],
		.line = s->line };
	s->from = i + s->len;
	return true;
}

int64_t
log_search_resume(const struct log_search *s)
{
	size_t keep = s->n - s->from;
	int64_t place = s->state == TEXT ? s->end : s->began;

	if (keep > s->len - 1)
		keep = s->len - 1;
	if (keep > 0)
		place = s->at[s->n - keep];
	return s->end - place > (int64_t)LOG_SEARCH_PIECE ? s->end : place;
}
