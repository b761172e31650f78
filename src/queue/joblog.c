/* SPDX-License-Identifier: ISC */
#include "queue/joblog.h"

#include <assert.h>
#include <string.h>
#include <zlib.h>

#include "queue/loghole.h"
#include "queue/stores.h"

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
struct chunk {
	int64_t start;
	int64_t length;
	bool packed;
	struct blob data;
	struct when written_at;
};
struct old_log {
	int64_t id;
	int64_t log_size;
	bool is_old;
};
struct total {
	int64_t n;
};

#include "queue/joblog.sql.h"

const struct store joblog_store = {
	.stmts = joblog_stmts,
};

const struct err *
joblog_state(struct db *db, struct arena *a, int64_t deployment_id,
    struct joblog_state *out)
{
	const struct log_args args = { .id = deployment_id };

	(void)memset(out, 0, sizeof(*out));
	return db_row(db, a, &sql_joblog_state, &args, out);
}

const struct err *
joblog_stored(struct db *db, struct arena *a, int64_t deployment_id,
    int64_t *out)
{
	const struct log_args args = { .id = deployment_id };
	const struct err *e;
	struct log_args found;

	e = db_row(db, a, &sql_joblog_stored, &args, &found);
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
	const struct stmt *look = &sql_joblog_chunk_at;
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
		look = &sql_joblog_chunks_after;
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
	if ((e = db_exec(db, &sql_joblog_append, &args, &done)) != NULL)
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

	e = db_row(db, a, &sql_joblog_hold, args, &found);
	arena_close(a);
	if (e != NULL)
		return e;
	if ((e = db_exec(db, &sql_joblog_drop_span, args, NULL)) != NULL)
		return e;
	return db_exec(db, &sql_joblog_insert_packed, args, NULL);
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
	if ((e = db_rows(db, a, &sql_joblog_plain_from, args, &list)) != NULL)
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

	if ((e = db_exec(db, &sql_joblog_mark_pruned, args, NULL)) != NULL)
		return e;
	return db_exec(db, &sql_joblog_drop_all, args, NULL);
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
	if ((e = db_rows(db, a, &sql_joblog_oldest, &args, &list)) != NULL)
		goto out;
	if (total_max > 0 &&
	    (e = db_row(db, a, &sql_joblog_total, NULL, &sum)) != NULL)
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
