/* SPDX-License-Identifier: ISC */
/*
 * Logs on a terminal.  A step can write anything, and a terminal obeys: it sets
 * its title and the clipboard, links text to other addresses, hides text, and
 * answers queries.  Only colors and the erasing of lines, as progress bars do it,
 * reach the terminal; all other control sequences (ECMA-48) are left out, with
 * ESC or in their C1 form.  One that lacks its end ends with its line.
 */
#ifndef SLIPWAY_CLI_SCREEN_H
#define SLIPWAY_CLI_SCREEN_H

#include <stdbool.h>

#include "core/buf.h"

/* What precedes the next piece of the log. */
struct screen {
	enum screen_state {
		SCREEN_TEXT,
		SCREEN_LEAD,     /* the first byte of a C1 character in UTF-8 */
		SCREEN_ESCAPE,   /* ESC */
		SCREEN_SEQUENCE, /* ESC [ */
		SCREEN_STRING,   /* a command string, up to BEL or ST */
		SCREEN_STRING_LEAD, /* the first byte of ST as a C1
				     * character */
	} state;
	char sequence[32]; /* after ESC [ */
	size_t len;
	int tail; /* bytes that the character in UTF-8 still lacks */
	bool is_styled;
};

/* Appends what a terminal may get of the piece; `s` begins as { 0 }. */
void screen_add(struct screen *s, const char *data, size_t len,
    struct buf *out);
/* Appends what ends the style of the text. */
void screen_end(struct screen *s, struct buf *out);

#endif
