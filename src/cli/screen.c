/* SPDX-License-Identifier: ISC */
#include "cli/screen.h"

#include <string.h>

#define ESC '\033'
#define CAN '\030' /* CAN and SUB end a sequence */
#define SUB '\032'
#define LEAD '\xc2' /* the first byte of U+0080 to U+00BF */
#define C1_FIRST 0x80
#define C1_LAST 0x9f

/* The number of bytes that follow a first byte in UTF-8; -1 if it is none. */
static int
tail_of(unsigned char byte)
{
	if (byte < 0xc2 || byte > 0xf4)
		return byte < 0x80 ? 0 : -1;
	return byte < 0xe0 ? 1 : (byte < 0xf0 ? 2 : 3);
}

static bool
is_tail(char c)
{
	return ((unsigned char)c & 0xc0) == 0x80;
}

/* What follows ESC and this character, or the C1 character of the same
 * meaning. */
static enum screen_state
state_after(char c)
{
	if (c == '[')
		return SCREEN_SEQUENCE;
	if (c != '\0' && strchr("]PX^_", c) != NULL)
		return SCREEN_STRING;
	return c >= 0x20 && c <= 0x2f ? SCREEN_ESCAPE : SCREEN_TEXT;
}

static void
sequence_begin(struct screen *s, char c)
{
	s->state = state_after(c);
	s->len = 0;
}

/* Adds a byte that is in no sequence. A byte that looks like a C1 character but
 * is in no character of UTF-8 would be one for some terminals. */
static void
text_add(struct screen *s, char c, struct buf *out)
{
	const unsigned char byte = (unsigned char)c;

	s->state = SCREEN_TEXT;
	if (is_tail(c) && s->tail > 0) {
		s->tail--;
		buf_putc(out, c);
		return;
	}
	s->tail = 0;
	if (c == ESC) {
		s->state = SCREEN_ESCAPE;
	} else if (c == LEAD) {
		s->state = SCREEN_LEAD;
	} else if (c == '\n' || c == '\r' || c == '\t' ||
	    (byte >= 0x20 && byte != 0x7f &&
		(byte < C1_FIRST || byte > C1_LAST))) {
		s->tail = tail_of(byte) > 0 ? tail_of(byte) : 0;
		buf_putc(out, c);
	}
}

/* Adds the byte after LEAD. */
static void
lead_end(struct screen *s, char c, struct buf *out)
{
	const unsigned char byte = (unsigned char)c;

	if (byte >= C1_FIRST && byte <= C1_LAST) {
		sequence_begin(s, (char)(byte - 0x40));
		return;
	}
	buf_putc(out, LEAD);
	s->tail = 1;
	text_add(s, c, out);
}

/* Ends a sequence at a byte that is no part of it: no sequence that lacks its end
 * hides more than its line. */
static bool
is_broken(struct screen *s, char c, struct buf *out)
{
	if (c == CAN || c == SUB) {
		s->state = SCREEN_TEXT;
		return true;
	}
	if (c != '\n' && c != ESC &&
	    (s->state == SCREEN_STRING || s->state == SCREEN_STRING_LEAD ||
		(c >= 0x20 && c <= 0x7e)))
		return false;
	s->tail = 0;
	text_add(s, c, out);
	return true;
}

/* Whether select graphic rendition hides text: its 8 conceals. After 38 and 48,
 * a color follows: 5 and an index, or 2 and three parts. */
static bool
is_hiding(const char *at, const char *end)
{
	bool after_color = false;
	size_t skipped = 0;
	int value;

	for (; at < end; at++) {
		for (value = 0; at < end && *at >= '0' && *at <= '9'; at++)
			value = value < 1000 ? value * 10 + *at - '0' : value;
		if (after_color)
			skipped = value == 5 ? 2 : (value == 2 ? 4 : 1);
		if (skipped == 0 && value == 8)
			return true;
		after_color = skipped == 0 && (value == 38 || value == 48) &&
		    *at == ';';
		skipped -= skipped > 0;
		for (; at < end && *at != ';'; at++)
			; /* parts of the same parameter follow a colon */
	}
	return false;
}

/* Whether the sequence sets colors and the like, or erases in the line. */
static bool
is_harmless(const struct screen *s)
{
	const char *end = s->sequence + s->len - 1;

	return (*end == 'K' || (*end == 'm' && !is_hiding(s->sequence, end))) &&
	    strspn(s->sequence, "0123456789;:") == (size_t)(end - s->sequence);
}

/* Adds the next byte after ESC [. */
static void
sequence_add(struct screen *s, char c, struct buf *out)
{
	if (s->len < sizeof(s->sequence))
		s->sequence[s->len] = c;
	s->len++;
	if (c < 0x40)
		return;
	s->state = SCREEN_TEXT;
	if (s->len > sizeof(s->sequence) || !is_harmless(s))
		return;
	buf_putc(out, ESC);
	buf_putc(out, '[');
	buf_add(out, s->sequence, s->len);
	s->is_styled = c == 'm' || s->is_styled;
}

void
screen_add(struct screen *s, const char *data, size_t len, struct buf *out)
{
	size_t i;

	for (i = 0; i < len; i++)
		switch (s->state) {
		case SCREEN_TEXT:
			text_add(s, data[i], out);
			break;
		case SCREEN_LEAD:
			lead_end(s, data[i], out);
			break;
		case SCREEN_ESCAPE:
			if (!is_broken(s, data[i], out))
				sequence_begin(s, data[i]);
			break;
		case SCREEN_SEQUENCE:
			if (!is_broken(s, data[i], out))
				sequence_add(s, data[i], out);
			break;
		case SCREEN_STRING:
			if (is_broken(s, data[i], out))
				break;
			if (data[i] == '\a')
				s->state = SCREEN_TEXT;
			else if (data[i] == LEAD)
				s->state = SCREEN_STRING_LEAD;
			break;
		case SCREEN_STRING_LEAD:
			if (!is_broken(s, data[i], out))
				s->state = data[i] == '\x9c' ? SCREEN_TEXT :
							       SCREEN_STRING;
			break;
		}
}

void
screen_end(struct screen *s, struct buf *out)
{
	if (s->is_styled)
		buf_puts(out, "\033[m");
	*s = (struct screen){ .len = 0 };
}
