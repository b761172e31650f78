/* SPDX-License-Identifier: ISC */
#include "store/page.h"

int64_t
page_offset(const struct page *p)
{
	return (p->page - 1) * p->limit;
}

int64_t
page_last(const struct page *p)
{
	return (p->total + p->limit - 1) / p->limit;
}

const struct err *
page_read(struct db *db, struct arena *a, const struct stmt *count,
    const struct stmt *rows, const void *args, struct page *p, struct list *out)
{
	const struct err *e;
	struct page_count total;

	*out = (struct list){ .items = NULL };
	if ((e = db_row(db, a, count, args, &total)) != NULL)
		return e;
	p->total = total.n;
	if (page_offset(p) >= p->total)
		return NULL;
	return db_rows(db, a, rows, args, out);
}
