/* SPDX-License-Identifier: ISC */
/*
 * Search for text in a log that arrives in pieces.  The case of ASCII letters
 * does not matter; escape sequences of terminals (ECMA-48) are ignored, also
 * inside a match.  A match lies within one line.
 */
#ifndef SLIPWAY_API_LOG_SEARCH_H
#define SLIPWAY_API_LOG_SEARCH_H

#include <stdbool.h>

#include "core/arena.h"

#define LOG_SEARCH_PIECE ((size_t)256 * 1024)

struct log_match {
	int64_t offset;
	int64_t length; /* with the escape sequences inside */
	int64_t line;
};

struct log_search;

/* Searches for a text without line breaks, from a line that has this number.
 * All memory is in the arena. */
struct log_search *log_search_open(struct arena *, const char *text,
    int64_t line);
/* Adds the next piece, at most LOG_SEARCH_PIECE bytes at that offset, once all
 * matches in the ones before are found. */
void log_search_add(struct log_search *, int64_t offset, const void *data,
    size_t len);
/* Finds the next match that does not overlap the last one; false if there is
 * none in the pieces added. */
bool log_search_next(struct log_search *, struct log_match *out);
/* Where another search has to begin to find the matches after those found: at
 * most LOG_SEARCH_PIECE before the end of the pieces added, so that an escape
 * sequence without an end does not keep it at one place. */
int64_t log_search_resume(const struct log_search *);

#endif
