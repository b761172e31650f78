/* SPDX-License-Identifier: ISC */
/* Reads a part of a list from a server that has pages of its own. */
#include <string.h>

#include "core/num.h"
#include "core/str.h"
#include "forge/inner.h"

#define IDLE 20 /* maximum number of pages without new items */
/* Items per page of the server: a hundred commits with their signatures could
 * exceed the limit of a response. */
#define PAGE_MAX 50
/* Memory for a response, twice while it arrives, for the items picked, and for
 * its headers. */
#define WORK (3 * FORGE_BODY + ((size_t)1 << 20))
/* Memory for the result. */
#define LIST_MAX (FORGE_BODY + FORGE_BODY / 4 * 3)
#define TEXT_MAX 16384 /* limit of a text that may be cut */
/* Divisor of the page size after a page was too large. It is large to limit the
 * number of attempts. */
#define FEWER 8

struct collect {
	struct forge *f;
	struct arena *a;
	size_t before; /* memory used before */
	const struct forge_ask *ask;
	const struct forge_rows *rows;
	int64_t first; /* index of the first requested item */
	int64_t want;
	int64_t have;
	int64_t per;  /* items per page of the server */
	int64_t skip; /* items to skip on the next page */
	bool more;
	bool again; /* ask again, with smaller pages */
	struct list *out;
};

/* Reads the server's maximum page size, once. */
static const struct err *
page_max(struct forge *f, struct arena *a, const char *access)
{
	struct forge_paging paging = { .max = PAGE_MAX };
	struct http_response got;
	const struct err *e;

	if (f->page_max != 0)
		return NULL;
	if (f->ops->form.paging == NULL) {
		f->page_max = PAGE_MAX;
		return NULL;
	}
	if ((e = forge_ask(f, a,
		 &(struct forge_ask){ .url = forge_url(f, a,
					  f->ops->form.paging, NULL, NULL,
					  NULL),
		     .access = access },
		 &got)) != NULL)
		return e;
	/* the server is older than this request, or the token lacks the
	 * scope */
	if (got.status == 404 || got.status == 403) {
		f->page_max = PAGE_MAX;
		return NULL;
	}
	if ((e = forge_judge(f, a, &got)) != NULL ||
	    (e = json_pick(a, f->ops->path.paging, got.body, got.len,
		 &paging)) != NULL)
		return e;
	if (paging.max < 1)
		return err_public(ERR_UPSTREAM,
		    "The Git server reports a page size below 1 "
		    "(max_response_items).");
	f->page_max = paging.max > PAGE_MAX ? PAGE_MAX : paging.max;
	return NULL;
}

/* Copies the texts, so that the page can be freed. */
static void
item_keep(struct collect *c, char *item)
{
	const struct json_path *p;
	const char **text;

	for (p = c->rows->paths; p->path != NULL; p++) {
		text = (const char **)(void *)(item + p->offset);
		if (p->type != F_STR || *text == NULL)
			continue;
		*text = p->offset == c->rows->cut && c->rows->cut != 0 ?
		    forge_shortened(c->a, *text, TEXT_MAX) :
		    arena_strdup(c->a, *text);
	}
}

/* Takes the requested items from a page of the server. */
static const struct err *
page_take(struct arena *own, const struct http_response *got, struct collect *c)
{
	const size_t size = c->rows->size;
	struct list items;
	const struct err *e;
	const char *from;
	int64_t n, i;
	char *to;

	if (c->rows->member != NULL)
		e = json_pick_member(own, c->rows->member, c->rows->paths, size,
		    got->body, got->len, &items);
	else
		e = json_pick_list(own, c->rows->paths, size, got->body,
		    got->len, &items);
	if (e != NULL)
		return e;
	n = (int64_t)items.n;
	for (i = 0; i < n && c->have < c->want; i++) {
		from = (const char *)items.items + (size_t)i * size;
		if (c->rows->fits != NULL &&
		    !c->rows->fits(from, c->rows->search))
			continue;
		if (c->skip > 0) {
			c->skip--;
			continue;
		}
		to = (char *)c->out->items + (size_t)c->have * size;
		(void)memcpy(to, from, size);
		item_keep(c, to);
		c->out->n = (size_t)++c->have;
		if (arena_used(c->a) - c->before > LIST_MAX)
			return err_public(ERR_UPSTREAM,
			    "The Git server's list is too large. Request fewer "
			    "items at once (limit).");
	}
	c->more = i < n;
	return NULL;
}

/* The pages requested before. */
struct seen {
	const char *url;
	const struct seen *before;
};

static bool
is_seen(const struct seen *s, const char *url)
{
	for (; s != NULL; s = s->before)
		if (strcmp(s->url, url) == 0)
			return true;
	return false;
}

static struct seen *
seen_add(struct arena *a, const char *url, const struct seen *before)
{
	struct seen *s = arena_alloc(a, 1, sizeof(*s));

	*s = (struct seen){ .url = url, .before = before };
	return s;
}

/* Whether the server's pages of this list are smaller than its stated maximum,
 * as with Gitea's COMMITS_RANGE_SIZE. Then the requested items start
 * elsewhere. */
static bool
is_clamped(const struct http_response *got, struct collect *c)
{
	const char *said = http_header(got, "x-perpage");
	int64_t per;

	if (said == NULL || !num_parse(said, 1, PAGE_MAX, &per) ||
	    per >= c->per)
		return false;
	c->per = c->f->page_max = per;
	return true;
}

/* Requests a page; returns the URL of the next, NULL if it was the last. */
static const struct err *
page_ask(struct arena *own, const char *url, struct collect *c,
    const char **next)
{
	const struct forge_ask ask = { .url = url, .access = c->ask->access };
	struct http_response got;
	const struct err *e;

	*next = NULL;
	e = forge_ask(c->f, own, &ask, &got);
	if (e != NULL && got.large && c->per > 1) {
		c->per = c->per > FEWER ? c->per / FEWER : 1;
		c->again = true;
		return NULL;
	}
	if (e != NULL)
		return e;
	/* 409: a repository without a commit */
	if (got.status == 409)
		return NULL;
	if ((e = forge_judge(c->f, own, &got)) != NULL)
		return e;
	if ((c->again = is_clamped(&got, c)))
		return NULL;
	if ((e = page_take(own, &got, c)) != NULL)
		return e;
	if ((url = http_link(own, &got, "next")) != NULL)
		*next = arena_strdup(c->a, url);
	return NULL;
}

/* Follows the links from the next requested item until there are enough. */
static const struct err *
pages_follow(struct arena *own, struct collect *c)
{
	const int64_t offset = c->first + c->have;
	/* which items the server's pages hold is known of whole lists only */
	const int64_t at = c->rows->fits != NULL ? 0 : offset / c->per;
	const char *url = arena_printf(c->a, "%s%cpage=%lld&%s=%lld",
	    c->ask->url, strchr(c->ask->url, '?') == NULL ? '?' : '&',
	    (long long)(at + 1), c->f->ops->limit, (long long)c->per);
	const struct seen *seen = NULL;
	const struct err *e = NULL;
	int64_t before;
	int idle = 0;

	c->skip = offset - at * c->per;
	c->again = c->more = false;
	while (e == NULL && url != NULL && c->have < c->want) {
		if (idle == IDLE && c->rows->fits != NULL) {
			break;
		} else if (idle == IDLE) {
			e = err_public(ERR_UPSTREAM,
			    "The Git server's list does not end.");
		} else if (is_seen(seen, url)) {
			e = err_public(ERR_UPSTREAM,
			    "The links of the Git server's list form a loop.");
		} else {
			seen = seen_add(c->a, url, seen);
			before = c->have;
			arena_clear(own);
			e = page_ask(own, url, c, &url);
			idle += c->have == before;
		}
	}
	c->more = c->more || url != NULL;
	return e;
}

const struct err *
forge_list(struct forge *f, struct arena *a, const struct forge_ask *ask,
    const struct forge_rows *rows, struct forge_page *page, struct list *out)
{
	struct collect c = { .f = f,
		.a = a,
		.ask = ask,
		.rows = rows,
		.first = (page->page - 1) * page->limit,
		.want = page->limit + (rows->fits != NULL),
		.out = out };
	const struct err *e;
	struct arena *own;

	out->items = arena_alloc(a, (size_t)c.want, rows->size);
	if ((e = page_max(f, a, ask->access)) != NULL)
		return e;
	c.per = rows->fits == NULL && page->limit < f->page_max ? page->limit :
								  f->page_max;
	c.before = arena_used(a);
	own = arena_open(WORK);
	do {
		e = pages_follow(own, &c);
	} while (e == NULL && c.again);
	arena_close(own);
	page->has_more = c.more || c.have > page->limit;
	if (c.have > page->limit)
		out->n = (size_t)page->limit;
	return e;
}
