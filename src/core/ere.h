/* SPDX-License-Identifier: ISC */
/*
 * POSIX extended regular expressions (regex(7)) that users write.
 *
 * No pattern and no text costs more than ERE_STATES_MAX steps for each
 * character of the text, and compiling costs no more than that either.  libc
 * gives no such bound: glibc takes minutes for patterns of twenty bytes.
 *
 * Characters are code points of UTF-8; named classes are those of ASCII.  What
 * POSIX leaves undefined is a fault, except for empty alternatives, which
 * match the empty text.
 */
#ifndef SLIPWAY_CORE_ERE_H
#define SLIPWAY_CORE_ERE_H

#include <stdbool.h>

#define ERE_STATES_MAX 1000 /* a{1,500} needs 999 */
#define ERE_BYTES_MAX 2048  /* of a pattern */

/* NULL if the pattern is valid, else what is wrong with it and what to write
 * instead: in static memory, until the next call. */
const char *ere_fault(const char *ere);
/* Whether all of `s` matches; an invalid pattern matches nothing. */
bool ere_matches(const char *ere, const char *s);

#endif
