/* SPDX-License-Identifier: ISC */
/* A page of a list, by number. */
#ifndef SLIPWAY_STORE_PAGE_H
#define SLIPWAY_STORE_PAGE_H

#include <stdint.h>

struct page {
	int64_t page;  /* from 1 */
	int64_t limit; /* 1..100 */
	int64_t total; /* set by the store: all that match */
};

#endif
