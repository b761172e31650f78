/* SPDX-License-Identifier: ISC */
/* Strings and times as text. */
#ifndef SLIPWAY_CORE_STR_H
#define SLIPWAY_CORE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/arena.h"

/* Equal, where NULL equals NULL only. */
bool str_eq(const char *, const char *);
bool str_starts(const char *s, const char *prefix);
bool str_ends(const char *s, const char *suffix);

/* Whether the bytes are well-formed UTF-8 (RFC 3629: no surrogates, no
 * overlong forms, at most U+10FFFF). */
bool str_utf8(const char *s, size_t len);
/* Code points of well-formed UTF-8. */
size_t str_chars(const char *s);
/* Whether there is nothing to see: blanks of all scripts (those of \s in
 * ECMA-262), characters that Unicode lets a renderer ignore, combining marks
 * without a character that they are drawn on, or nothing. */
bool str_is_blank(const char *s);
/* Whether there is a character that steers a terminal or a page instead of
 * standing for itself: C0, DEL, C1, line and paragraph separators, and those
 * that change the direction of writing. */
bool str_has_control(const char *s);
/* The same without tabs and ends of lines, for text of several lines. */
bool str_has_control_in_lines(const char *s);
/* For terminals: the text with each of these characters, and each byte that is
 * not UTF-8, as \u{202e} and \x9b; the text itself if there is none. */
const char *str_visible(struct arena *, const char *s);

/* Whether all of s matches the POSIX ERE (core/ere.h); an invalid pattern
 * matches nothing. */
bool str_matches(const char *s, const char *ere);

/* Whether all of s matches the pattern: `*` is any run of characters but `/`,
 * `**` any run, `?` one character but `/`.  Patterns longer than STR_GLOB_MAX
 * bytes match nothing. */
#define STR_GLOB_MAX 1024
bool str_glob(const char *pattern, const char *s);

/* "defaultBranch" of "default_branch". */
const char *str_camel(struct arena *, const char *snake);
/* Lower-case ASCII letters, digits and single dashes; "project" if nothing is
 * left. At most 64 bytes. */
const char *str_slug(struct arena *, const char *name);

/* RFC 3339 in UTC with milliseconds, of milliseconds since 1970. */
#define STR_TIME_SIZE 80
void str_time(char out[STR_TIME_SIZE], int64_t ms);
/* The same back; false if it is not such a text. Offsets other than Z are
 * accepted and converted. */
bool str_time_parse(const char *s, int64_t *out);

/* Milliseconds of the wall clock, and of one that never jumps. */
int64_t time_now_ms(void);
int64_t time_mono_ms(void);

#endif
