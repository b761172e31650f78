/* SPDX-License-Identifier: ISC */
/* Strings, and times as text. */
#ifndef SLIPWAY_CORE_STR_H
#define SLIPWAY_CORE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/time.h"

/* Whether the strings are equal; NULL equals only NULL. */
bool str_eq(const char *, const char *);
bool str_starts(const char *s, const char *prefix);
bool str_ends(const char *s, const char *suffix);

/* The number of code points in well-formed UTF-8. */
size_t str_chars(const char *s);
/* A copy without the newlines at its end. */
const char *str_chomp(struct arena *, const char *s);
/* The text; of one that is longer than `max` bytes as many whole characters as
 * fit before an ellipsis. */
const char *str_clip(struct arena *, const char *s, size_t max);
/* Whether nothing is visible: the text is empty, or holds only blanks of any
 * script (those of \s in ECMA-262), characters that Unicode lets a renderer
 * ignore, and combining marks without a character to be drawn on. */
bool str_is_blank(const char *s);
/* Whether the text contains a character that controls a terminal or a page: C0,
 * DEL, C1, line and paragraph separators, and those that change the direction
 * of writing. */
bool str_has_control(const char *s);
/* The same, but tabs and line ends are allowed, for text of several lines. */
bool str_has_control_in_lines(const char *s);
/* Text for terminals: each of these characters, and each byte that is not
 * UTF-8, is written as \u{202e} or \x9b.  Returns the text itself if there are
 * none. */
const char *str_visible(struct arena *, const char *s);

/* Whether all of s matches the POSIX ERE (core/ere.h); an invalid pattern
 * matches nothing. */
bool str_matches(const char *s, const char *ere);

/* Converts "default_branch" to "defaultBranch". */
const char *str_camel(struct arena *, const char *snake);
/* Lower-case ASCII letters, digits and single dashes, at most 64 bytes;
 * "project" if nothing is left. */
const char *str_slug(struct arena *, const char *name);

/* Formats milliseconds since 1970 as RFC 3339 in UTC, with milliseconds. */
#define STR_TIME_SIZE 80
void str_time(char out[STR_TIME_SIZE], int64_t ms);
/* Parses such a text; false if it is malformed.  Accepts offsets other than Z
 * and converts them. */
bool str_time_parse(const char *s, int64_t *out);

#endif
