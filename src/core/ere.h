/* SPDX-License-Identifier: ISC */
/*
 * POSIX extended regular expressions (regex(7)) written by users.
 *
 * Matching takes at most ERE_STATES_MAX steps per character of the text,
 * whatever the pattern and the text, and compiling takes no more. libc
 * guarantees no such bound: glibc takes minutes for some patterns of twenty
 * bytes.
 *
 * Characters are UTF-8 code points; named classes are those of ASCII.  What
 * POSIX leaves undefined is rejected, except for empty alternatives, which
 * match the empty text.
 */
#ifndef SLIPWAY_CORE_ERE_H
#define SLIPWAY_CORE_ERE_H

#include <stdbool.h>
#include <stddef.h>

#include "core/ere_limits.h"

/* Returns NULL if the pattern is valid, else what is wrong with it and what to
 * write instead.  The text is static and valid until the next call. */
const char *ere_fault(const char *ere);
/* Whether the pattern matches all of `s`; an invalid pattern matches
 * nothing. */
bool ere_matches(const char *ere, const char *s);

enum ere_result {
	ERE_NONE,
	ERE_MATCH,
	ERE_UNDECIDED, /* the work exceeds the maximum */
};
/* The same, while `*work` is below the maximum; adds the states that it visits,
 * of which each takes about five nanoseconds. */
enum ere_result ere_match_within(const char *ere, const char *s, size_t max,
    size_t *work);

#endif
