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
/* An answer, twice while it comes, and its headers. */
#define WORK (2 * FORGE_BODY + ((size_t)1 << 20))
/* What is kept of all pages of one list. */
#define LIST_MAX (FORGE_BODY + FORGE_BODY / 2)

struct collect {
	struct arena *a;
	size_t before; /* what of it was in use */
	const struct json_path *paths;
	size_t size;
	int64_t skip; /* items before ours */
	int64_t want;
	int64_t have;
	bool more;
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

/* Takes what is ours of a server's page. */
static const struct err *
page_take(const struct http_response *got, struct collect *c)
{
	struct list items;
	const struct err *e;
	int64_t n, take;
	char *to;

	e = json_pick_list(c->a, c->paths, c->size, got->body, got->len,
	    &items);
	if (e != NULL)
		return e;
	if (arena_used(c->a) - c->before > LIST_MAX)
		return err_tell(ERR_UPSTREAM,
		    "The Git server's list is larger than is taken.");
	n = (int64_t)items.n;
	if (c->skip >= n) {
		c->skip -= n;
		return NULL;
	}
	take = n - c->skip;
	if (take > c->want - c->have) {
		take = c->want - c->have;
		c->more = true;
	}
	to = (char *)c->out->items + (size_t)c->have * c->size;
	(void)memcpy(to, (const char *)items.items + (size_t)c->skip * c->size,
	    (size_t)take * c->size);
	c->skip = 0;
	c->have += take;
	c->out->n = (size_t)c->have;
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

/* One page; the address of the next, NULL if it was the last. */
static const struct err *
page_ask(struct forge *f, struct arena *own, const char *access,
    const char *url, struct collect *c, const char **next)
{
	struct http_response got;
	const struct err *e;

	*next = NULL;
	if ((e = forge_ask(f, own,
		 &(struct forge_ask){ .url = url, .access = access }, &got)) !=
	    NULL)
		return e;
	/* 409: a repository without a commit */
	if (got.status == 409)
		return NULL;
	if ((e = forge_judge(f, own, &got)) != NULL ||
	    (e = page_take(&got, c)) != NULL)
		return e;
	if ((url = http_link(own, &got, "next")) != NULL)
		*next = arena_strdup(c->a, url);
	return NULL;
}

/* From that page on, along the links, until there is enough. */
static const struct err *
pages_follow(struct forge *f, const char *access, const char *url,
    struct collect *c)
{
	struct arena *own = arena_open(WORK);
	const struct seen *seen = NULL;
	const struct err *e = NULL;
	int64_t before;
	int idle = 0;

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
			e = page_ask(f, own, access, url, c, &url);
			idle += c->have == before;
		}
	}
	arena_close(own);
	c->more = c->more || url != NULL;
	return e;
}

const struct err *
forge_list(struct forge *f, struct arena *a, const struct forge_ask *ask,
    const struct forge_rows *rows, struct forge_page *page, struct list *out)
{
	struct collect c = { .a = a,
		.paths = rows->paths,
		.size = rows->size,
		.want = page->limit,
		.out = out };
	int64_t first = page->page, limit = page->limit, offset;
	const struct err *e;
	const char *url;

	out->items = arena_alloc(a, (size_t)page->limit, rows->size);
	if ((e = page_max(f, a, ask->access)) != NULL)
		return e;
	if (limit > f->page_max) {
		offset = (page->page - 1) * limit;
		limit = f->page_max;
		first = offset / limit + 1;
		c.skip = offset % limit;
	}
	c.before = arena_used(a);
	url = arena_printf(a, "%s%cpage=%lld&%s=%lld", ask->url,
	    strchr(ask->url, '?') == NULL ? '?' : '&', (long long)first,
	    f->ops->limit, (long long)limit);
	e = pages_follow(f, ask->access, url, &c);
	page->has_more = c.more;
	return e;
}
