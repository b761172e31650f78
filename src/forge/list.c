/* SPDX-License-Identifier: ISC */
/* A part of a list that the server hands out by pages of its own. */
#include <string.h>

#include "core/num.h"
#include "core/str.h"
#include "forge/inner.h"

#define IDLE 20 /* pages of the server that bring nothing */
/* Items on a server's page, at most: a hundred commits with their signatures
 * may be more than an answer is let. */
#define PAGE_MAX 50
/* An answer, twice while it comes, what is picked of it, and its headers. */
#define WORK (3 * FORGE_BODY + ((size_t)1 << 20))
/* What is kept of all pages of one list. */
#define LIST_MAX (FORGE_BODY + FORGE_BODY / 4 * 3)
#define TEXT_MAX 16384 /* of a text that may be cut */
/* Of a page that was too large so many times fewer are asked for: a server that
 * lies is not to be asked often. */
#define FEWER 8

struct collect {
	struct forge *f;
	struct arena *a;
	size_t before; /* what of it was in use */
	const struct forge_ask *ask;
	const struct forge_rows *rows;
	int64_t first; /* which item is the first of ours */
	int64_t want;
	int64_t have;
	int64_t per;  /* items on a page of the server */
	int64_t skip; /* on the next one, before ours */
	bool more;
	bool again; /* to be asked in smaller pages */
	struct list *out;
};

/* How many items the server puts on a page at most: asked once. */
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
	/* older than the question, or the token's scopes leave it out */
	if (got.status == 404 || got.status == 403) {
		f->page_max = PAGE_MAX;
		return NULL;
	}
	if ((e = forge_judge(f, a, &got)) != NULL ||
	    (e = json_pick(a, f->ops->path.paging, got.body, got.len,
		 &paging)) != NULL)
		return e;
	if (paging.max < 1)
		return err_tell(ERR_UPSTREAM,
		    "The Git server says that its pages are empty "
		    "(max_response_items).");
	f->page_max = paging.max > PAGE_MAX ? PAGE_MAX : paging.max;
	return NULL;
}

/* A copy, so that the page it stood on can go. */
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

/* Takes what is ours of a server's page. */
static const struct err *
page_take(struct arena *own, const struct http_response *got, struct collect *c)
{
	const size_t size = c->rows->size;
	struct list items;
	const struct err *e;
	int64_t n, i;
	char *to;

	e = json_pick_list(own, c->rows->paths, size, got->body, got->len,
	    &items);
	if (e != NULL)
		return e;
	n = (int64_t)items.n;
	for (i = c->skip; i < n && c->have < c->want; i++) {
		to = (char *)c->out->items + (size_t)c->have * size;
		(void)memcpy(to, (const char *)items.items + (size_t)i * size,
		    size);
		item_keep(c, to);
		c->out->n = (size_t)++c->have;
		if (arena_used(c->a) - c->before > LIST_MAX)
			return err_tell(ERR_UPSTREAM,
			    "The Git server's list is larger than is taken: "
			    "ask for fewer at once (limit).");
	}
	c->more = i < n;
	c->skip = c->skip > n ? c->skip - n : 0;
	return NULL;
}

/* A page that was asked for, and those before it. */
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

/* Whether the server puts fewer on a page of this list than it says to be its
 * most, as Gitea's COMMITS_RANGE_SIZE has it: then ours begin elsewhere. */
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

/* One page; the address of the next, NULL if it was the last. */
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

/* From the next that is ours on, along the links, until there is enough. */
static const struct err *
pages_follow(struct arena *own, struct collect *c)
{
	const int64_t offset = c->first + c->have;
	const char *url = arena_printf(c->a, "%s%cpage=%lld&%s=%lld",
	    c->ask->url, strchr(c->ask->url, '?') == NULL ? '?' : '&',
	    (long long)(offset / c->per + 1), c->f->ops->limit,
	    (long long)c->per);
	const struct seen *seen = NULL;
	const struct err *e = NULL;
	int64_t before;
	int idle = 0;

	c->skip = offset % c->per;
	c->again = c->more = false;
	while (e == NULL && url != NULL && c->have < c->want) {
		if (idle == IDLE) {
			e = err_tell(ERR_UPSTREAM,
			    "The Git server's list does not end.");
		} else if (is_seen(seen, url)) {
			e = err_tell(ERR_UPSTREAM,
			    "The Git server's list leads to itself.");
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
		.want = page->limit,
		.out = out };
	const struct err *e;
	struct arena *own;

	out->items = arena_alloc(a, (size_t)page->limit, rows->size);
	if ((e = page_max(f, a, ask->access)) != NULL)
		return e;
	c.per = page->limit < f->page_max ? page->limit : f->page_max;
	c.before = arena_used(a);
	own = arena_open(WORK);
	do {
		e = pages_follow(own, &c);
	} while (e == NULL && c.again);
	arena_close(own);
	page->has_more = c.more;
	return e;
}
