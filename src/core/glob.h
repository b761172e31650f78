/* SPDX-License-Identifier: ISC */
/*
 * Patterns of names, written by users: `*` is any run of characters but `/`,
 * `**` any run, `?` one character but `/`.  Everything else stands for itself.
 *
 * All places in the pattern that a name may have reached are bits, which each
 * byte of the name moves at once.  So no pattern backtracks, and the work for a
 * name is its length times the pattern's words of 64 bits.
 */
#ifndef SLIPWAY_CORE_GLOB_H
#define SLIPWAY_CORE_GLOB_H

#include <stdbool.h>
#include <stddef.h>

/* Longer patterns, in bytes, match nothing. */
#define GLOB_MAX 1024

/* Whether the pattern matches all of `s`. */
bool glob_matches(const char *pattern, const char *s);

/* Sorts names by their bytes and drops repeated ones; returns how many are
 * left. */
size_t glob_names_sort(const char **names, size_t n);

enum glob_found {
	GLOB_NONE,
	GLOB_ONE,
	GLOB_UNDECIDED, /* the budget did not suffice */
};

/* Whether the pattern matches one of the names, which are sorted.  Takes the
 * work from the budget, whose unit is about three nanoseconds. */
enum glob_found glob_find(const char *pattern, const char *const *names,
    size_t n, size_t *budget);

#endif
