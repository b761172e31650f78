/* SPDX-License-Identifier: ISC */
/* A page of a list, by page number. */
#ifndef SLIPWAY_STORE_PAGE_H
#define SLIPWAY_STORE_PAGE_H

#include "db/db.h"

struct page {
	int64_t page;   /* from 1 */
	int64_t limit;  /* 1..100 */
	int64_t member; /* limits the list to the projects of which this user
			 * is a member; 0 = no limit */
	int64_t reader; /* the user whose role as a member is read */
	int64_t total;  /* number of matching items; set by the store */
};

/* The result of a statement that counts. */
struct page_count {
	int64_t n;
};

/* Number of the last page; 0 = the list is empty. */
int64_t page_last(const struct page *);
/* Items before the page, for OFFSET. */
int64_t page_offset(const struct page *);
/* Counts the matching items, then reads those of the page, unless it is past
 * the end. Both statements take their arguments from
 * `args`. */
MUSTCHECK const struct err *page_read(struct db *, struct arena *,
    const struct stmt *count, const struct stmt *rows, const void *args,
    struct page *, struct list *out);

#endif
