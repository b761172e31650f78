/* SPDX-License-Identifier: ISC */
#include "cli/screen.h"

#include <string.h>

#define ESC '\033'

static void
text_add(struct screen *s, char c, struct buf *out)
{
	const unsigned char byte = (unsigned char)c;

	if (c == ESC)
		s->state = SCREEN_ESCAPE;
	else if (byte == 0xc2)
		s->state = SCREEN_LEAD;
	else if ((byte >= 0x20 && byte != 0x7f) || c == '\n' || c == '\r' ||
	    c == '\t')
		buf_putc(out, c);
}

/* U+0080 to U+009F are control characters. */
static void
lead_end(struct screen *s, char c, struct buf *out)
{
	const unsigned char byte = (unsigned char)c;

	s->state = SCREEN_TEXT;
	if (byte >= 0x80 && byte <= 0x9f)
		return;
	buf_putc(out, '\xc2');
	text_add(s, c, out);
}

static void
escape_end(struct screen *s, char c)
{
	s->len = 0;
	if (c == '[')
		s->state = SCREEN_SEQUENCE;
	else if (c != '\0' && strchr("]PX^_", c) != NULL)
		s->state = SCREEN_STRING;
	else if (c != ESC)
		s->state = SCREEN_TEXT;
}

/* Select graphic rendition, and erase in line. */
static void
sequence_add(struct screen *s, char c, struct buf *out)
{
	if (s->len < sizeof(s->sequence))
		s->sequence[s->len++] = c;
	if (c < 0x40 || c > 0x7e)
		return;
	s->state = SCREEN_TEXT;
	if ((c != 'm' && c != 'K') || s->sequence[s->len - 1] != c ||
	    strspn(s->sequence, "0123456789;:") != s->len - 1)
		return;
	buf_putc(out, ESC);
	buf_putc(out, '[');
	buf_add(out, s->sequence, s->len);
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
			escape_end(s, data[i]);
			break;
		case SCREEN_SEQUENCE:
			sequence_add(s, data[i], out);
			break;
		case SCREEN_STRING:
			if (data[i] == ESC)
				s->state = SCREEN_END;
			else if (data[i] == '\a')
				s->state = SCREEN_TEXT;
			break;
		case SCREEN_END:
			s->state = data[i] == '\\' ? SCREEN_TEXT :
						     SCREEN_STRING;
			break;
		}
}
