/* SPDX-License-Identifier: ISC */
/*
 * Pages of lists. A page that fits into memory is built there. A larger one is
 * read again and sent item by item, so the client always gets the page that it
 * requested, however large the items are.
 */
#include <string.h>

#include "web/answer.h"

/* Limit of a page in memory: with its rows it must fit into a worker. */
#define PAGE_MAX ((size_t)3 << 20)

static void
close_write(struct buf *b, const struct page *p)
{
	buf_printf(b,
	    ",\"pagination\":{\"page\":%lld,\"limit\":%lld,\"total\":%lld,"
	    "\"totalPages\":%lld}}",
	    (long long)p->page, (long long)p->limit, (long long)p->total,
	    (long long)page_last(p));
}

/* Writes the item at that place of the list; `found` is false if it was deleted
 * meanwhile. */
static const struct err *
item_write(struct req *rq, int64_t place, bool *found)
{
	const struct answer_pages *s = &rq->answer.pages;
	struct page one = s->page;
	const struct arena_mark mark = arena_mark(rq->a);
	const struct err *e;
	struct list list;

	*found = false;
	one.page = place + 1;
	one.limit = 1;
	if ((e = s->read(rq, &one, &list)) != NULL)
		return e;
	if (list.n == 1) {
		*found = true;
		json_write(&rq->answer.body, s->shape, list.items, 0);
	}
	arena_rewind(rq->a, &mark);
	return buf_check(&rq->answer.body);
}

/* Writes the next piece into the empty body. */
static const struct err *
piece_write(struct req *rq)
{
	struct answer_pages *s = &rq->answer.pages;
	struct buf *body = &rq->answer.body;
	const struct err *e;
	bool found = false;

	if (s->written == 0)
		buf_puts(body, "{\"data\":[");
	else
		buf_putc(body, ',');
	if (s->written < s->page.limit &&
	    (e = item_write(rq, page_offset(&s->page) + s->written, &found)) !=
		NULL)
		return e;
	if (found) {
		s->written++;
		return NULL;
	}
	s->ended = true;
	body->len -= s->written > 0; /* the comma */
	buf_putc(body, ']');
	close_write(body, &s->page);
	buf_putc(body, '\n');
	return NULL;
}

static const struct err *
page_source(struct req *rq, int64_t offset, size_t max, struct blob *out)
{
	struct answer_pages *s = &rq->answer.pages;
	struct buf *body = &rq->answer.body;
	const struct err *e;

	(void)offset; /* the body is read only once, from its beginning */
	*out = (struct blob){ .data = NULL };
	if (s->taken == body->len) {
		if (s->ended)
			return NULL;
		buf_clear(body);
		s->taken = 0;
		if ((e = piece_write(rq)) != NULL)
			return e;
	}
	out->data = body->data + s->taken;
	out->len = body->len - s->taken < max ? body->len - s->taken : max;
	s->taken += out->len;
	return NULL;
}

/* Builds the page in memory, unless it is too large. */
static const struct err *
page_make(struct req *rq, const struct shape *shape, req_pager *read,
    struct page *p)
{
	struct buf *body = &rq->answer.body;
	const struct err *e;
	struct list list;

	if ((e = read(rq, p, &list)) != NULL)
		return e;
	if (arena_used(rq->a) > ANSWER_ROWS)
		return err_new(ERR_TOO_LARGE, "a page");
	buf_puts(body, "{\"data\":");
	json_write_list(body, shape, &list, 0);
	close_write(body, p);
	if (body->len > PAGE_MAX)
		return err_new(ERR_TOO_LARGE, "a page");
	return buf_check(body);
}

const struct err *
answer_pages(struct req *rq, const struct shape *shape, req_pager *read)
{
	const struct arena_mark mark = arena_mark(rq->a);
	struct page page = req_page(rq);
	const struct err *e;

	e = page_make(rq, shape, read, &page);
	if (e != NULL && e->code != ERR_TOO_LARGE)
		return e;
	if (e != NULL) {
		arena_rewind(rq->a, &mark);
		answer_stream(rq, NULL, page_source, 0, -1);
		rq->answer.pages = (struct answer_pages){ .shape = shape,
			.read = read,
			.page = page };
	}
	answer_page_headers(rq, &page);
	return NULL;
}
