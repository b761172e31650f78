/* SPDX-License-Identifier: ISC */
/* The bytes of UTF-8 (RFC 3629: no surrogates, no overlong forms, at most
 * U+10FFFF). */
#ifndef SLIPWAY_CORE_UTF8_H
#define SLIPWAY_CORE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* Length of the first code point, of which `left` bytes may be read; 0 if it is
 * malformed. */
size_t utf8_len(const char *text, size_t left);
/* Whether the bytes are well-formed. */
bool utf8_valid(const char *s, size_t len);
/* Removes the last character if the end of the text cuts it. */
void utf8_drop_partial(char *s);

#endif
