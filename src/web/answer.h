/* SPDX-License-Identifier: ISC */
/* Internals of responses, for route.c, problem.c and fcgi.c. Handlers use the
 * functions of req.h. */
#ifndef SLIPWAY_WEB_ANSWER_H
#define SLIPWAY_WEB_ANSWER_H

#include "web/req.h"

/* More than any one object needs: the scripts of a pipeline are limited to 1
 * MiB, and escaping turns a byte into at most six. */
#define ANSWER_MAX ((size_t)7 << 20)
/* Memory for reading a page of a list. Together with the response built from
 * it, it must fit into a worker. */
#define ANSWER_ROWS ((size_t)2 << 20)

/* Sets Link and X-Total-Count of a page. */
void answer_page_headers(struct req *, const struct page *);

/* The body's memory belongs to the process and is reused. */
void answer_init(struct answer *);
/* Discards the content. */
void answer_reset(struct answer *);
void answer_release(struct answer *);

/* Replaces the content by the problem+json of an error; headers that are
 * already set remain. */
void problem_answer(struct req *, const struct err *);
/* The reason phrase of a status: "Not Found" for 404. */
const char *status_phrase(int status);

#endif
