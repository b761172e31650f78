/* SPDX-License-Identifier: ISC */
#include "store/joblog.h"

#include <assert.h>
#include <string.h>
#include <zlib.h>

#include "core/buf.h"
#include "store/loghole.h"
#include "store/store.h"

#define BATCH_ARENA ((size_t)3 << 20) /* for one batch of chunks */
#define HOLD_ARENA ((size_t)4096)

/* Arguments of all statements here. */
struct log_args {
	int64_t id;
	int64_t epoch;
	int64_t start;
	int64_t end;
	int64_t length;
	int64_t days;
	struct blob data;
	int64_t breaks;
	struct when written_at; /* of the first of the chunks */
};
#define L(m) FIELD(struct log_args, m, 0)

struct chunk {
	int64_t start;
	int64_t length;
	bool packed;
	struct blob data;
	struct when written_at;
};
#define C(m) FIELD(struct chunk, m, 0)

static const struct field id_args[] = { L(id), FIELD_END };
static const struct field id_start_args[] = { L(id), L(start), FIELD_END };
static const struct field span_args[] = { L(id), L(start), L(end), FIELD_END };
static const struct field at_args[] = { L(id), L(start), L(end), L(end),
	FIELD_END };
static const struct field chunk_row[] = { C(start), C(length), C(packed),
	C(data), FIELD_END };
static const struct field place_row[] = { C(start), C(length), C(written_at),
	FIELD_END };

static const struct field state_row[] = {
	FIELD(struct joblog_state, size, 0),
	FIELD(struct joblog_state, complete, 0),
	FIELD(struct joblog_state, pruned, 0),
	FIELD_END,
};
static const struct stmt state = {
	.name = "joblog_state",
	.sql = "SELECT IF(d.finished_at IS NOT NULL, d.log_size,"
	       " COALESCE((SELECT c.start + c.length FROM log_chunk c"
	       " WHERE c.deployment_id = d.id ORDER BY c.start DESC LIMIT 1),"
	       " 0)) AS size, d.finished_at IS NOT NULL AS complete,"
	       " d.log_pruned AND d.log_size > 0 AS pruned"
	       " FROM deployment d WHERE d.id = ?",
	.args = id_args,
	.row = state_row,
	.rowsize = sizeof(struct joblog_state),
};

/* Where the first gap begins, or the end.  A chunk is behind a gap if all before
 * it end earlier. */
static const struct field stored_row[] = { L(length), FIELD_END };
static const struct field stored_args[] = { L(id), L(id), FIELD_END };
static const struct stmt stored = {
	.name = "joblog_stored",
	.sql = "SELECT COALESCE((SELECT MIN(t.reached) FROM"
	       " (SELECT c.start, COALESCE(MAX(c.start + c.length) OVER"
	       " (ORDER BY c.start ROWS BETWEEN UNBOUNDED PRECEDING"
	       " AND 1 PRECEDING), 0) AS reached FROM log_chunk c"
	       " WHERE c.deployment_id = ?) t WHERE t.start > t.reached),"
	       " (SELECT MAX(c.start + c.length) FROM log_chunk c"
	       " WHERE c.deployment_id = ?), 0) AS length",
	.args = stored_args,
	.row = stored_row,
	.rowsize = sizeof(struct log_args),
};

/* A chunk that contains a position, and the chunks after that chunk.  Chunks can
 * overlap, so the last one before the position need not be it. */
static const struct stmt chunk_at = {
	.name = "joblog_chunk_at",
	.sql = "SELECT start, length, packed, data FROM log_chunk"
	       " WHERE deployment_id = ? AND start > ? AND start <= ?"
	       " AND start + length > ? ORDER BY start DESC LIMIT 1",
	.args = at_args,
	.row = chunk_row,
	.rowsize = sizeof(struct chunk),
};
static const struct stmt chunks_after = {
	.name = "joblog_chunks_after",
	.sql = "SELECT start, length, packed, data FROM log_chunk"
	       " WHERE deployment_id = ? AND start > ? AND start < ?"
	       " ORDER BY start LIMIT 256",
	.args = span_args,
	.row = chunk_row,
	.rowsize = sizeof(struct chunk),
};
/* Small chunks of a finished log, to be compressed. */
static const struct stmt plain_from = {
	.name = "joblog_plain_from",
	.sql =
	    "SELECT start, length, written_at FROM log_chunk WHERE deployment_id = ?"
	    " AND start >= ? AND packed = 0 ORDER BY start LIMIT 1000",
	.args = id_start_args,
	.row = place_row,
	.rowsize = sizeof(struct chunk),
};

/* A stored chunk stays unless the new one is longer: the same bytes may come
 * again with more after them.  The lock is exclusive, because the end of the
 * deployment often follows in the same transaction. */
static const struct field append_args[] = { L(start), L(length), L(data),
	L(breaks), L(id), L(epoch), FIELD_END };
static const struct stmt append = {
	.name = "joblog_append",
	.sql = "INSERT INTO log_chunk (deployment_id, start, length, packed,"
	       " data, breaks, written_at)"
	       " SELECT d.id, ?, ?, 0, ?, ?, NOW(3) FROM deployment d"
	       " WHERE d.id = ? AND d.epoch = ? AND d.status = 'running'"
	       " FOR UPDATE"
	       " ON DUPLICATE KEY UPDATE data = IF(VALUES(length) >"
	       " log_chunk.length, VALUES(data), log_chunk.data),"
	       " breaks = IF(VALUES(length) > log_chunk.length,"
	       " VALUES(breaks), log_chunk.breaks),"
	       " length = GREATEST(VALUES(length), log_chunk.length)",
	.args = append_args,
};

/* No row if the log was pruned meanwhile. */
static const struct stmt hold = {
	.name = "joblog_hold",
	.sql = "SELECT id FROM deployment WHERE id = ? AND log_pruned = 0"
	       " LOCK IN SHARE MODE",
	.args = id_args,
	.row = id_args,
	.rowsize = sizeof(struct log_args),
};
static const struct stmt drop_span = {
	.name = "joblog_drop_span",
	.sql = "DELETE FROM log_chunk WHERE deployment_id = ?"
	       " AND start >= ? AND start < ?",
	.args = span_args,
};
static const struct field packed_args[] = { L(id), L(start), L(length), L(data),
	L(breaks), L(written_at), FIELD_END };
static const struct stmt insert_packed = {
	.name = "joblog_insert_packed",
	.sql = "INSERT INTO log_chunk (deployment_id, start, length, packed,"
	       " data, breaks, written_at) VALUES (?, ?, ?, 1, ?, ?, ?)",
	.args = packed_args,
};

struct old_log {
	int64_t id;
	int64_t log_size;
	bool is_old;
};
struct total {
	int64_t n;
};
static const struct field days_args[] = { L(days), L(days), FIELD_END };
static const struct field old_row[] = {
	FIELD(struct old_log, id, 0),
	FIELD(struct old_log, log_size, 0),
	FIELD(struct old_log, is_old, 0),
	FIELD_END,
};
static const struct field total_row[] = {
	FIELD(struct total, n, 0),
	FIELD_END,
};
static const struct stmt oldest = {
	.name = "joblog_oldest",
	.sql = "SELECT id, log_size, ? > 0"
	       " AND finished_at < NOW(3) - INTERVAL ? DAY AS is_old"
	       " FROM deployment FORCE INDEX (deployment_log)"
	       " WHERE log_pruned = 0 AND finished_at IS NOT NULL"
	       " ORDER BY finished_at, log_size, id LIMIT 100",
	.args = days_args,
	.row = old_row,
	.rowsize = sizeof(struct old_log),
};
static const struct stmt total = {
	.name = "joblog_total",
	.sql = "SELECT CAST(COALESCE(SUM(log_size), 0) AS SIGNED) AS n"
	       " FROM deployment FORCE INDEX (deployment_log)"
	       " WHERE log_pruned = 0 AND finished_at IS NOT NULL",
	.row = total_row,
	.rowsize = sizeof(struct total),
};
static const struct stmt drop_all = {
	.name = "joblog_drop_all",
	.sql = "DELETE FROM log_chunk WHERE deployment_id = ?",
	.args = id_args,
};
static const struct stmt mark_pruned = {
	.name = "joblog_mark_pruned",
	.sql = "UPDATE deployment SET log_pruned = 1"
	       " WHERE id = ? AND finished_at IS NOT NULL",
	.args = id_args,
};

static const struct stmt *const joblog_stmts[] = {
	&state,
	&stored,
	&chunk_at,
	&chunks_after,
	&plain_from,
	&append,
	&hold,
	&drop_span,
	&insert_packed,
	&oldest,
	&total,
	&drop_all,
	&mark_pruned,
	NULL,
};

const struct store joblog_store = {
	.stmts = joblog_stmts,
};

const struct err *
joblog_state(struct db *db, struct arena *a, int64_t deployment_id,
    struct joblog_state *out)
{
	const struct log_args args = { .id = deployment_id };

	(void)memset(out, 0, sizeof(*out));
	return db_row(db, a, &state, &args, out);
}

const struct err *
joblog_stored(struct db *db, struct arena *a, int64_t deployment_id,
    int64_t *out)
{
	const struct log_args args = { .id = deployment_id };
	const struct err *e;
	struct log_args found;

	e = db_row(db, a, &stored, &args, &found);
	*out = e == NULL ? found.length : 0;
	return e;
}

/* Returns the bytes of a chunk; a compressed one is inflated in the arena. */
static const struct err *
chunk_open(const struct chunk *c, struct arena *a, struct blob *out)
{
	uLongf len = (uLongf)c->length;
	unsigned char *plain;

	*out = c->data;
	if (c->length < 0 || (size_t)c->length > JOBLOG_PACKED ||
	    (!c->packed && c->data.len != (size_t)c->length))
		return err_new(ERR_INTERNAL, "log chunk of %lld bytes",
		    (long long)c->length);
	if (!c->packed)
		return NULL;
	plain = arena_alloc(a, (size_t)c->length, 1);
	if (uncompress(plain, &len, c->data.data, (uLong)c->data.len) != Z_OK ||
	    len != (uLongf)c->length)
		return err_new(ERR_INTERNAL, "log chunk does not inflate");
	*out = (struct blob){ .data = plain, .len = (size_t)c->length };
	return NULL;
}

/* A read in progress; `at` is the next byte to read. */
struct window {
	int64_t at;
	char *to;
	size_t have;
	size_t max;
};

/* Copies the chunk's part of the requested bytes. False at a gap; chunks may
 * overlap. */
static bool
chunk_take(const struct chunk *c, struct arena *a, struct window *w,
    const struct err **e)
{
	struct blob bytes;
	size_t skip, len;

	if (c->start > w->at)
		return false;
	if (c->start + c->length <= w->at)
		return true;
	if ((*e = chunk_open(c, a, &bytes)) != NULL)
		return false;
	skip = (size_t)(w->at - c->start);
	len = bytes.len - skip;
	if (len > w->max - w->have)
		len = w->max - w->have;
	(void)memcpy(w->to + w->have, (const char *)bytes.data + skip, len);
	w->have += len;
	w->at += (int64_t)len;
	return true;
}

/* Reads from a chunk that contains the next byte up to a gap; nothing if there
 * is none. */
static const struct err *
chunks_take(struct db *db, struct arena *batch, struct window *w, int64_t id)
{
	struct log_args args = { .id = id,
		.start = w->at - (int64_t)JOBLOG_PACKED,
		.end = w->at };
	const struct stmt *look = &chunk_at;
	const struct chunk *c;
	const struct err *e;
	struct list list;
	bool more;
	size_t i;

	do {
		if ((e = db_rows(db, batch, look, &args, &list)) != NULL)
			return e;
		c = list.items;
		more = list.n > 0;
		for (i = 0; i < list.n && w->have < w->max && more; i++) {
			more = chunk_take(&c[i], batch, w, &e);
			args.start = c[i].start;
		}
		arena_clear(batch);
		args.end = w->at + (int64_t)JOBLOG_PACKED;
		look = &chunks_after;
	} while (more && w->have < w->max);
	return e;
}

/* Reads the line that stands for the hole here; nothing at the end of the log. */
static const struct err *
hole_take(struct db *db, struct arena *batch, struct window *w, int64_t id)
{
	struct loghole hole;
	const struct err *e;
	size_t len = w->max - w->have;

	e = loghole_find(db, batch, id, w->at, &hole);
	arena_clear(batch);
	if (e != NULL)
		return e;
	if ((int64_t)len > hole.end - w->at)
		len = (size_t)(hole.end - w->at);
	loghole_write(&hole, w->at, w->to + w->have, len);
	w->have += len;
	w->at += (int64_t)len;
	return NULL;
}

const struct err *
joblog_read(struct db *db, struct arena *a, int64_t deployment_id,
    int64_t offset, size_t max, struct blob *out)
{
	struct window w = { .at = offset, .max = max };
	const struct err *e;
	struct arena *batch = arena_open(BATCH_ARENA);
	size_t before;

	*out = (struct blob){ .data = NULL };
	w.to = arena_alloc(a, max, 1);
	do {
		before = w.have;
		e = chunks_take(db, batch, &w, deployment_id);
		if (e == NULL && w.have == before)
			e = hole_take(db, batch, &w, deployment_id);
	} while (e == NULL && w.have > before && w.have < max);
	if (e == NULL)
		*out = (struct blob){ .data = w.to, .len = w.have };
	arena_close(batch);
	return e;
}

int64_t
joblog_breaks(const void *data, size_t len)
{
	const char *s = data, *end = s + len;
	int64_t n = 0;

	while (len > 0 && (s = memchr(s, '\n', (size_t)(end - s))) != NULL) {
		n++;
		if (++s == end)
			break;
	}
	return n;
}

const struct err *
joblog_append(struct db *db, int64_t deployment_id, int64_t epoch,
    int64_t offset, const void *data, size_t len)
{
	const struct log_args args = { .id = deployment_id,
		.epoch = epoch,
		.start = offset,
		.length = (int64_t)len,
		.data = { .data = data, .len = len },
		.breaks = joblog_breaks(data, len) };
	const struct err *e;
	struct db_done done;

	assert(len <= JOBLOG_CHUNK);
	if (len == 0)
		return NULL;
	if ((e = db_exec(db, &append, &args, &done)) != NULL)
		return e;
	if (done.affected == 0)
		return err_new(ERR_PRECONDITION,
		    "joblog_append: deployment %lld is no longer held",
		    (long long)deployment_id);
	return NULL;
}

/* Replaces plain chunks by a compressed one, unless the log was pruned: chunks
 * added to a pruned log would never be deleted. */
static const struct err *
pack_body(struct db *db, void *context)
{
	const struct log_args *args = context;
	struct arena *a = arena_open(HOLD_ARENA);
	struct log_args found;
	const struct err *e;

	e = db_row(db, a, &hold, args, &found);
	arena_close(a);
	if (e != NULL)
		return e;
	if ((e = db_exec(db, &drop_span, args, NULL)) != NULL)
		return e;
	return db_exec(db, &insert_packed, args, NULL);
}

/* How many plain chunks, from the first, fit together without a gap and without
 * becoming too large. */
static int64_t
run_end(const struct list *list)
{
	const struct chunk *c = list->items;
	int64_t end = c[0].start;
	size_t i;

	for (i = 0; i < list->n && c[i].start <= end; i++) {
		if (c[i].start + c[i].length - c[0].start >
		    (int64_t)JOBLOG_PACKED)
			break;
		if (c[i].start + c[i].length > end)
			end = c[i].start + c[i].length;
	}
	return end;
}

/* Writes one compressed chunk. Advances *at; sets *done at the end. */
static const struct err *
pack_one(struct db *db, struct arena *a, struct log_args *args, bool *done)
{
	struct blob plain;
	struct list list;
	const struct err *e;
	uLongf len;
	void *packed;

	*done = false;
	if ((e = db_rows(db, a, &plain_from, args, &list)) != NULL)
		return e;
	if (list.n == 0) {
		*done = true;
		return NULL;
	}
	args->start = ((const struct chunk *)list.items)->start;
	args->written_at = ((const struct chunk *)list.items)->written_at;
	args->end = run_end(&list);
	args->length = args->end - args->start;
	e = joblog_read(db, a, args->id, args->start, (size_t)args->length,
	    &plain);
	if (e != NULL)
		return e;
	if (plain.len != (size_t)args->length)
		return err_new(ERR_INTERNAL, "log of %lld: a chunk is missing",
		    (long long)args->id);
	len = compressBound((uLong)plain.len);
	packed = arena_alloc(a, (size_t)len, 1);
	if (compress2(packed, &len, plain.data, (uLong)plain.len, 6) != Z_OK)
		return err_new(ERR_INTERNAL, "deflate");
	args->data = (struct blob){ .data = packed, .len = (size_t)len };
	args->breaks = joblog_breaks(plain.data, plain.len);
	e = db_transaction(db, pack_body, args);
	*done = e != NULL && e->code == ERR_NOTFOUND;
	args->start = args->end;
	return *done ? NULL : e;
}

const struct err *
joblog_pack(struct db *db, struct arena *a, int64_t deployment_id)
{
	struct log_args args = { .id = deployment_id };
	struct arena *work;
	struct joblog_state now;
	const struct err *e;
	bool done = false;

	if ((e = joblog_state(db, a, deployment_id, &now)) != NULL)
		return e;
	if (!now.complete)
		return err_new(ERR_CONFLICT, "log of %lld: not finished",
		    (long long)deployment_id);
	work = arena_open(BATCH_ARENA);
	while (!done && (e = pack_one(db, work, &args, &done)) == NULL)
		arena_clear(work);
	arena_close(work);
	return e;
}

static const struct err *
prune_body(struct db *db, void *context)
{
	const struct log_args *args = context;
	const struct err *e;

	if ((e = db_exec(db, &mark_pruned, args, NULL)) != NULL)
		return e;
	return db_exec(db, &drop_all, args, NULL);
}

const struct err *
joblog_prune(struct db *db, int64_t days, int64_t total_max, int64_t *out)
{
	struct log_args args = { .days = days };
	struct arena *a = arena_open(BATCH_ARENA);
	struct total sum = { .n = 0 };
	const struct old_log *log;
	const struct err *e;
	struct list list;
	size_t i;

	*out = 0;
	if ((e = db_rows(db, a, &oldest, &args, &list)) != NULL)
		goto out;
	if (total_max > 0 && (e = db_row(db, a, &total, NULL, &sum)) != NULL)
		goto out;
	log = list.items;
	for (i = 0; i < list.n && i < JOBLOG_PRUNED; i++) {
		if (!log[i].is_old && (total_max == 0 || sum.n <= total_max))
			break;
		args.id = log[i].id;
		if ((e = db_transaction(db, prune_body, &args)) != NULL)
			goto out;
		sum.n -= log[i].log_size;
		*out += 1;
	}
out:
	arena_close(a);
	return e;
}
