/* SPDX-License-Identifier: ISC */
#include "store/loghole.h"

#include <stdio.h>
#include <string.h>

#include "store/store.h"

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
#define A(m) FIELD(struct hole_args, m, 0)
#define S(m) FIELD(struct hole_size, m, 0)

static const struct field start_args[] = { A(id), A(at), FIELD_END };
static const struct field end_args[] = { A(at), A(id), FIELD_END };
static const struct field missing_args[] = { S(size), S(id), FIELD_END };
static const struct field hole_row[] = { FIELD(struct hole_row, n, 0),
	FIELD_END };

/* The next chunk ends a hole, and so does the end of a finished log. */
static const struct stmt hole_end = {
	.name = "loghole_end",
	.sql = "SELECT LEAST(COALESCE((SELECT c.start FROM log_chunk c"
	       " WHERE c.deployment_id = d.id AND c.start > ?"
	       " ORDER BY c.start LIMIT 1), d.log_size, 0),"
	       " IF(d.finished_at IS NULL, 9223372036854775807, d.log_size))"
	       " AS n FROM deployment d WHERE d.id = ? AND d.log_pruned = 0",
	.args = end_args,
	.row = hole_row,
	.rowsize = sizeof(struct hole_row),
};
static const struct stmt hole_start = {
	.name = "loghole_start",
	.sql = "SELECT COALESCE(MAX(start + length), 0) AS n FROM log_chunk"
	       " WHERE deployment_id = ? AND start <= ?",
	.args = start_args,
	.row = hole_row,
	.rowsize = sizeof(struct hole_row),
};
static const struct stmt missing = {
	.name = "loghole_missing",
	.sql = "SELECT CAST(COALESCE(SUM(GREATEST(t.start - t.reached, 0)), 0)"
	       " + GREATEST(? - COALESCE(MAX(t.start + t.length), 0), 0)"
	       " AS SIGNED) AS n FROM"
	       " (SELECT c.start, c.length, COALESCE(MAX(c.start + c.length)"
	       " OVER (ORDER BY c.start ROWS BETWEEN UNBOUNDED PRECEDING"
	       " AND 1 PRECEDING), 0) AS reached FROM log_chunk c"
	       " WHERE c.deployment_id = ?) t",
	.args = missing_args,
	.row = hole_row,
	.rowsize = sizeof(struct hole_row),
};

static const struct stmt *const hole_stmts[] = { &hole_end, &hole_start,
	&missing, NULL };

const struct store loghole_store = {
	.stmts = hole_stmts,
};

const struct err *
loghole_find(struct db *db, struct arena *a, int64_t deployment_id, int64_t at,
    struct loghole *out)
{
	const struct hole_args args = { .id = deployment_id, .at = at };
	const struct err *e;
	struct hole_row row;

	*out = (struct loghole){ .start = at, .end = at };
	e = db_row(db, a, &hole_end, &args, &row);
	if (e != NULL)
		return e->code == ERR_NOTFOUND ? NULL : e;
	if (row.n <= at)
		return NULL;
	out->end = row.n;
	if ((e = db_row(db, a, &hole_start, &args, &row)) != NULL)
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

	e = db_row(db, a, &missing, &args, &row);
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
