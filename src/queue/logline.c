/* SPDX-License-Identifier: ISC */
#include "queue/logline.h"

#include <string.h>

#include "queue/joblog.h"
#include "queue/loghole.h"
#include "queue/stores.h"

#define BATCH_ARENA ((size_t)1 << 20)
#define HOLE_ARENA ((size_t)4096)

struct line_args {
	int64_t id;
	int64_t after;
};
struct line_chunk {
	int64_t start;
	int64_t length;
	struct maybe breaks;
	struct when written_at;
};
struct line_step {
	int64_t position;
	int64_t log_offset;
	struct when started_at;
};

#include "queue/logline.sql.h"

const struct store logline_store = {
	.stmts = logline_stmts,
};

/* A walk over the chunks of a log. */
struct walk {
	struct db *db;
	int64_t id;
	struct arena *batch;
	struct list chunks; /* of this batch */
	size_t next;        /* the next one of them */
	int64_t at;         /* the lines before this byte are counted */
	int64_t line;       /* that contains it */
	struct line_chunk hole;
};

/* Counts the lines up to `to` by reading them. */
static const struct err *
walk_read(struct walk *w, int64_t to)
{
	struct arena *a = arena_open(2 * JOBLOG_PACKED);
	const struct err *e = NULL;
	struct blob bytes;
	size_t most;

	while (w->at < to) {
		most = to - w->at < (int64_t)JOBLOG_PACKED ?
		    (size_t)(to - w->at) :
		    JOBLOG_PACKED;
		e = joblog_read(w->db, a, w->id, w->at, most, &bytes);
		if (e != NULL || bytes.len == 0)
			break;
		w->line += joblog_breaks(bytes.data, bytes.len);
		w->at += (int64_t)bytes.len;
		arena_clear(a);
	}
	arena_close(a);
	return e;
}

/* Makes a chunk of the hole at w->at; NULL if the log ends there. */
static const struct err *
walk_hole(struct walk *w, struct when at, const struct line_chunk **out)
{
	struct arena *a = arena_open(HOLE_ARENA);
	struct loghole hole;
	const struct err *e;

	*out = NULL;
	e = loghole_find(w->db, a, w->id, w->at, &hole);
	arena_close(a);
	if (e != NULL || hole.end <= w->at)
		return e;
	w->hole = (struct line_chunk){ .start = hole.start,
		.length = hole.end - hole.start,
		.breaks = { .n = loghole_breaks(&hole), .set = true },
		.written_at = at };
	*out = &w->hole;
	return NULL;
}

/* The chunk at w->at, or the hole there; NULL at the end of the log. */
static const struct err *
walk_chunk(struct walk *w, const struct line_chunk **out)
{
	struct line_args args = { .id = w->id, .after = -1 };
	const struct line_chunk *c = w->chunks.items;
	const struct err *e;

	for (*out = NULL;; w->next++) {
		if (w->next == w->chunks.n) {
			if (c != NULL && w->chunks.n < SQL_LOGLINE_BATCH)
				return walk_hole(w, (struct when){ 0 }, out);
			if (c != NULL)
				args.after = c[w->next - 1].start;
			arena_clear(w->batch);
			e = db_rows(w->db, w->batch, &sql_logline_chunks, &args,
			    &w->chunks);
			w->next = 0;
			if (e != NULL)
				return e;
			if (w->chunks.n == 0)
				return walk_hole(w, (struct when){ 0 }, out);
			c = w->chunks.items;
		}
		if (c[w->next].start > w->at)
			return walk_hole(w, c[w->next].written_at, out);
		if (c[w->next].start + c[w->next].length > w->at) {
			*out = &c[w->next];
			return NULL;
		}
	}
}

/* Moves past the chunk. Reads it if it has no count of lines, or if the walk
 * begins inside it. */
static const struct err *
walk_over(struct walk *w, const struct line_chunk *c)
{
	const int64_t end = c->start + c->length;
	const struct err *e = NULL;

	if (!c->breaks.set || c->start != w->at)
		e = walk_read(w, end);
	else
		w->line += c->breaks.n;
	w->at = end; /* also if the log was deleted meanwhile */
	return e;
}

/* An index in progress. */
struct index {
	struct walk walk;
	const struct line_step *step;
	size_t steps;
	size_t begun; /* steps that begin before or at the place */
	struct arena *a;
	struct logline_place *place;
	size_t n, max;
};

static void
place_add(struct index *x, struct when at)
{
	struct logline_place *more;

	if (x->n == x->max) {
		x->max = 2 * x->max + 64;
		more = arena_alloc(x->a, x->max, sizeof(*more));
		if (x->n > 0)
			(void)memcpy(more, x->place, x->n * sizeof(*more));
		x->place = more;
	}
	x->place[x->n++] = (struct logline_place){ .offset = x->walk.at,
		.line = x->walk.line,
		.at = at,
		.step = { .n = x->begun > 0 ? x->step[x->begun - 1].position :
					      0,
		    .set = x->begun > 0 } };
}

/* Adds the steps that begin before `end`, and a place if one is due here. */
static const struct err *
places_add(struct index *x, struct when at, int64_t end)
{
	struct walk *w = &x->walk;
	const struct err *e;

	if ((x->begun == x->steps || x->step[x->begun].log_offset > w->at) &&
	    (x->n == 0 || end - x->place[x->n - 1].offset > LOGLINE_EVERY))
		place_add(x, at);
	while (x->begun < x->steps && x->step[x->begun].log_offset < end) {
		if ((e = walk_read(w, x->step[x->begun].log_offset)) != NULL)
			return e;
		x->begun++;
		place_add(x, x->step[x->begun - 1].started_at);
	}
	return NULL;
}

const struct err *
logline_index(struct db *db, struct arena *a, int64_t deployment_id,
    struct list *out)
{
	const struct line_args args = { .id = deployment_id };
	struct index x = { .walk = { .db = db, .id = deployment_id, .line = 1 },
		.a = a };
	const struct line_chunk *c;
	const struct err *e;
	struct list list;

	*out = (struct list){ .n = 0 };
	if ((e = db_rows(db, a, &sql_logline_steps, &args, &list)) != NULL)
		return e;
	x.step = list.items;
	x.steps = list.n;
	x.walk.batch = arena_open(BATCH_ARENA);
	while ((e = walk_chunk(&x.walk, &c)) == NULL && c != NULL)
		if ((e = places_add(&x, c->written_at, c->start + c->length)) !=
			NULL ||
		    (e = walk_over(&x.walk, c)) != NULL)
			break;
	arena_close(x.walk.batch);
	*out = (struct list){ .items = x.place, .n = x.n };
	return e;
}

const struct err *
logline_at(struct db *db, int64_t deployment_id, int64_t offset, int64_t *line)
{
	struct walk w = { .db = db, .id = deployment_id, .line = 1 };
	const struct line_chunk *c;
	const struct err *e;

	w.batch = arena_open(BATCH_ARENA);
	while ((e = walk_chunk(&w, &c)) == NULL && c != NULL &&
	    c->start + c->length <= offset)
		if ((e = walk_over(&w, c)) != NULL)
			break;
	if (e == NULL && c != NULL)
		e = walk_read(&w, offset);
	arena_close(w.batch);
	*line = w.line;
	return e;
}
