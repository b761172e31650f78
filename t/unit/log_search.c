/* SPDX-License-Identifier: ISC */
/* Where a search of a log continues. */
#include "api/log_search.h"

#include "tap.h"

#define PIECES 3

static char piece[LOG_SEARCH_PIECE];

/* Searches a text that pieces without matches follow; where to resume. */
static int64_t
resume_after(struct arena *a, const char *text, int pieces)
{
	struct log_search *s = log_search_open(a, "needle", 1);
	int64_t at = (int64_t)strlen(text);
	struct log_match match;

	log_search_add(s, 0, text, strlen(text));
	while (pieces-- > 0) {
		if (log_search_next(s, &match))
			return -1;
		log_search_add(s, at, piece, sizeof(piece));
		at += (int64_t)sizeof(piece);
	}
	return log_search_resume(s);
}

int
main(void)
{
	const int64_t end = PIECES * (int64_t)LOG_SEARCH_PIECE;
	struct arena *a = arena_open((size_t)64 << 20);

	(void)memset(piece, 'x', sizeof(piece));
	is_int(resume_after(a, "", PIECES), end - 5,
	    "a search resumes at a text that may begin to match");
	is_int(resume_after(a, "\033]0;", 0), 0,
	    "a search resumes at an escape sequence without an end");
	is_int(resume_after(a, "\033]0;", PIECES), end + 4,
	    "a long sequence without an end does not keep a search at one place");
	is_int(resume_after(a, "a need\033]0;", PIECES), end + 10,
	    "the text before such a sequence does not keep a search at one place");
	arena_close(a);
	return tap_done();
}
