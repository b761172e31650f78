/* SPDX-License-Identifier: ISC */
/*
 * Memory that lives as long as a request or a job and is freed at once.
 *
 * Nothing returns NULL: out of memory, or past the arena's limit, the process
 * logs and exits (EX_OSERR), and its supervisor starts another.  Limits of
 * what comes in from outside are checked before memory is taken for it.
 */
#ifndef SLIPWAY_CORE_ARENA_H
#define SLIPWAY_CORE_ARENA_H

#include <stddef.h>

#include "core/err.h"

struct arena;

/* `limit` in bytes, for all that the arena hands out until it is cleared. */
struct arena *arena_open(size_t limit);
/* Frees all that was handed out, keeps the first block. */
void arena_clear(struct arena *);
void arena_close(struct arena *);
/* What was handed out after the mark was taken is freed; it must not have been
 * cleared in between. */
struct arena_mark {
	struct block *head;
	size_t head_used;
	size_t used;
};
struct arena_mark arena_mark(const struct arena *);
void arena_rewind(struct arena *, const struct arena_mark *);
/* Bytes handed out since the last clear. */
size_t arena_used(const struct arena *);

/* Bytes that it may still hand out. */
size_t arena_left(const struct arena *);

/* n * size zeroed bytes, aligned for any type; n * size may be 0. */
void *arena_alloc(struct arena *, size_t n, size_t size);
/* A copy that ends in NUL. */
char *arena_strndup(struct arena *, const char *s, size_t len);
char *arena_strdup(struct arena *, const char *s);
char *arena_printf(struct arena *, const char *fmt, ...) PRINTFLIKE(2, 3);

/* Process-lifetime memory for what is made once, in main. Never NULL. */
void *mem_alloc(size_t n, size_t size);
void *mem_grow(void *p, size_t n, size_t size);
void mem_free(void *p);

#endif
