/* SPDX-License-Identifier: ISC */
/*
 * Memory that lives as long as a request or a job and is freed all at once.
 *
 * Nothing returns NULL: if memory runs out, or an allocation exceeds the
 * arena's limit, the process logs this and exits (EX_OSERR), and its supervisor
 * starts another.  Check the size of outside input before allocating memory for
 * it.
 */
#ifndef SLIPWAY_CORE_ARENA_H
#define SLIPWAY_CORE_ARENA_H

#include <stddef.h>

#include "core/err.h"

struct arena;

/* `limit` is the total number of bytes that the arena may hand out before it is
 * cleared. */
struct arena *arena_open(size_t limit);
/* Frees everything handed out, but keeps the first block. */
void arena_clear(struct arena *);
void arena_close(struct arena *);
/* Releasing a mark frees everything handed out since the mark was set.  The
 * arena must not have been cleared in between. */
struct arena_mark {
	struct block *head;
	size_t head_used;
	size_t used;
};
struct arena_mark arena_mark(const struct arena *);
void arena_rewind(struct arena *, const struct arena_mark *);
/* Bytes handed out since the last clear. */
size_t arena_used(const struct arena *);

/* Bytes that the arena can still hand out. */
size_t arena_left(const struct arena *);

/* Returns n * size zeroed bytes, aligned for any type; n * size may be 0. */
void *arena_alloc(struct arena *, size_t n, size_t size);
/* Returns a NUL-terminated copy. */
char *arena_strndup(struct arena *, const char *s, size_t len);
char *arena_strdup(struct arena *, const char *s);
char *arena_printf(struct arena *, const char *fmt, ...) PRINTFLIKE(2, 3);

/* Memory that lives as long as the process, for what main allocates once.
 * Never NULL. */
void *mem_alloc(size_t n, size_t size);
void *mem_grow(void *p, size_t n, size_t size);
void mem_free(void *p);

#endif
