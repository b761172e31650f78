/* SPDX-License-Identifier: ISC */
#include "api/board.h"

#include <stdio.h>
#include <string.h>

#define PATH_LOGGED 160

void
board_clear(struct board_place *p)
{
	atomic_store(&p->ready, 0);
	board_end(p);
}

void
board_begin(struct board_place *p, const char *method, const char *uri,
    const char *id, int64_t until)
{
	size_t len = strcspn(uri, "?");

	(void)snprintf(p->request, sizeof(p->request), "%.64s %.16s %.*s", id,
	    method, len < PATH_LOGGED ? (int)len : PATH_LOGGED, uri);
	atomic_store(&p->until, until);
}

void
board_end(struct board_place *p)
{
	atomic_store(&p->until, 0);
	p->request[0] = '\0';
}
