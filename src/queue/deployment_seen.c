/* SPDX-License-Identifier: ISC */
/* No index leads to the newest deployments of several projects. So the newest
 * ones of each project are found by the indexes of its own list, and merged. The
 * cost depends on the number of projects, not on that of deployments. */
#include "queue/deployment_seen.h"

#include "store/member.h"

#define PAGE_ARENA ((size_t)8 << 20)
#define PAGE_BYTES ((size_t)2 << 20) /* at which a page of large rows is cut */

/* The newest ids of the projects read so far. */
struct newest {
	int64_t *ids; /* in descending order */
	size_t n, max;
	int64_t floor; /* smaller ids of some project are not read */
	bool more;     /* whether some were left out */
};

static void
newest_add(struct newest *all, int64_t id)
{
	size_t at = all->n;

	if (all->n == all->max) {
		all->more = true;
		if (id < all->ids[--at])
			return;
	} else {
		all->n++;
	}
	for (; at > 0 && all->ids[at - 1] < id; at--)
		all->ids[at] = all->ids[at - 1];
	all->ids[at] = id;
}

/* Adds a page of the list of one project. */
static void
newest_merge(struct newest *all, const struct list *page, int64_t next)
{
	const struct deployment *d = page->items;
	size_t i;

	for (i = 0; i < page->n; i++)
		newest_add(all, d[i].id);
	if (next == 0)
		return;
	all->more = true;
	if (d[page->n - 1].id > all->floor)
		all->floor = d[page->n - 1].id;
}

static const struct err *
newest_find(struct db *db, const struct list *projects,
    const struct deployment_filter *filter, struct newest *out)
{
	struct arena *own = arena_open(PAGE_ARENA);
	const struct member *m = projects->items;
	struct deployment_filter of = *filter;
	const struct err *e = NULL;
	struct list page;
	int64_t next;
	size_t i;

	for (i = 0; e == NULL && i < projects->n; i++) {
		arena_clear(own);
		of.project_id = m[i].project_id;
		if ((e = deployment_page(db, own, &of, &page, &next)) == NULL)
			newest_merge(out, &page, next);
	}
	arena_close(own);
	while (out->n > 0 && out->ids[out->n - 1] < out->floor)
		out->n--;
	return e;
}

/* Reads the rows. If they are large, the rest is left to the next page. */
static const struct err *
rows_read(struct db *db, struct arena *a, struct newest *all, struct list *out)
{
	struct deployment *d = arena_alloc(a, all->n, sizeof(*d));
	const size_t start = arena_used(a);
	const struct err *e;
	size_t i;

	*out = (struct list){ .items = d };
	for (i = 0; i < all->n; i++) {
		if (i > 0 && arena_used(a) - start > PAGE_BYTES) {
			all->n = i;
			all->more = true;
			break;
		}
		e = deployment_by_id(db, a, all->ids[i], &d[out->n]);
		if (e != NULL && e->code != ERR_NOTFOUND)
			return e;
		out->n += e == NULL; /* it may have been deleted meanwhile */
	}
	return NULL;
}

const struct err *
deployment_page_seen(struct db *db, struct arena *a, int64_t user_id,
    const struct deployment_filter *filter, struct list *out, int64_t *next)
{
	struct newest all = { .max = (size_t)filter->limit };
	const struct err *e;
	struct list projects;

	*next = 0;
	*out = (struct list){ .items = NULL };
	if ((e = member_projects(db, a, user_id, &projects)) != NULL)
		return e;
	all.ids = arena_alloc(a, all.max, sizeof(*all.ids));
	if ((e = newest_find(db, &projects, filter, &all)) != NULL)
		return e;
	if ((e = rows_read(db, a, &all, out)) == NULL && all.more && all.n > 0)
		*next = all.ids[all.n - 1];
	return e;
}
