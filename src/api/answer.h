/* SPDX-License-Identifier: ISC */
/* The inside of answers, for route.c, problem.c and fcgi.c; handlers use what
 * req.h offers. */
#ifndef SLIPWAY_API_ANSWER_H
#define SLIPWAY_API_ANSWER_H

#include "api/req.h"

/* More than any one object has: the scripts of a pipeline are 1 MiB, of which
 * each byte may take six. */
#define ANSWER_MAX ((size_t)7 << 20)
/* What is read for a page of a list: with the answer that is made of it, it
 * must fit into a worker. */
#define ANSWER_ROWS ((size_t)2 << 20)

/* Of a page: Link and X-Total-Count. */
void answer_page_headers(struct req *, const struct page *);

/* The body's memory is the process's and is used again. */
void answer_init(struct answer *);
/* Forgets all that was put in. */
void answer_reset(struct answer *);
void answer_release(struct answer *);

/* The problem+json of an error, in place of what was answered so far; header
 * fields set before stay. */
void problem_answer(struct req *, const struct err *);
/* "Not Found" of 404. */
const char *status_phrase(int status);

#endif
