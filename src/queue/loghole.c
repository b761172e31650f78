/* SPDX-License-Identifier: ISC */
#include "queue/loghole.h"

#include <stdio.h>
#include <string.h>

#include "queue/stores.h"

#define LINE_MAX 96

struct hole_args {
	int64_t id;
	int64_t at;
};
struct hole_size {
	int64_t id;
	int64_t size;
};
struct hole_row {
	int64_t n;
};

#include "queue/loghole.sql.h"

const struct store loghole_store = {
	.stmts = loghole_stmts,
};

const struct err *
loghole_find(struct db *db, struct arena *a, int64_t deployment_id, int64_t at,
    struct loghole *out)
{
	const struct hole_args args = { .id = deployment_id, .at = at };
	const struct err *e;
	struct hole_row row;

	*out = (struct loghole){ .start = at, .end = at };
	e = db_row(db, a, &sql_loghole_end, &args, &row);
	if (e != NULL)
		return e->code == ERR_NOTFOUND ? NULL : e;
	if (row.n <= at)
		return NULL;
	out->end = row.n;
	if ((e = db_row(db, a, &sql_loghole_start, &args, &row)) != NULL)
		return e;
	/* a chunk that was stored meanwhile */
	if (row.n > at)
		*out = (struct loghole){ .start = at, .end = at };
	else
		out->start = row.n;
	return NULL;
}

const struct err *
loghole_missing(struct db *db, struct arena *a, int64_t deployment_id,
    int64_t size, int64_t *out)
{
	const struct hole_size args = { .id = deployment_id, .size = size };
	const struct err *e;
	struct hole_row row;

	e = db_row(db, a, &sql_loghole_missing, &args, &row);
	*out = e == NULL ? row.n : 0;
	return e;
}

void
loghole_write(const struct loghole *hole, int64_t from, char *out, size_t len)
{
	char line[LINE_MAX];
	const int64_t last = hole->end - 1;
	int64_t i, size = hole->end - hole->start;
	int n;

	n = snprintf(line, sizeof(line),
	    "\n==> %lld bytes of the log are missing here", (long long)size);
	/* a short one is a number alone, as far as it fits */
	if (n >= size)
		(void)snprintf(line, sizeof(line), "\n%lld?", (long long)size);
	(void)memset(out, ' ', len);
	n = (int)strlen(line);
	for (i = from; i < hole->start + n && i < from + (int64_t)len; i++)
		out[i - from] = line[i - hole->start];
	if (last >= from && last < from + (int64_t)len)
		out[last - from] = '\n';
}

int64_t
loghole_breaks(const struct loghole *hole)
{
	return hole->end - hole->start > 1 ? 2 : hole->end - hole->start;
}
