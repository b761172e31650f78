/* SPDX-License-Identifier: ISC */
#include "core/arena.h"

#include <assert.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "core/log.h"

#define BLOCK ((size_t)16 * 1024)
#define ALIGN _Alignof(max_align_t)

struct block {
	struct block *next;
	size_t size; /* of data */
	size_t used;
	_Alignas(max_align_t) unsigned char data[];
};

struct arena {
	struct block *head; /* the current block; the last in the list is the
			     * oldest */
	size_t limit;
	size_t used;
};

static void *
must(void *p, size_t wanted)
{
	if (p == NULL) {
		log_error("out of memory: %zu bytes", wanted);
		exit(EX_OSERR);
	}
	return p;
}

static struct block *
block_open(size_t size, struct block *next)
{
	struct block *b;

	b = must(malloc(sizeof(*b) + size), sizeof(*b) + size);
	b->next = next;
	b->size = size;
	b->used = 0;
	return b;
}

struct arena *
arena_open(size_t limit)
{
	struct arena *a;

	a = must(malloc(sizeof(*a)), sizeof(*a));
	a->head = block_open(BLOCK, NULL);
	a->limit = limit;
	a->used = 0;
	return a;
}

struct arena_mark
arena_mark(const struct arena *a)
{
	return (struct arena_mark){ a->head, a->head->used, a->used };
}

void
arena_rewind(struct arena *a, const struct arena_mark *mark)
{
	struct block *b;

	while ((b = a->head) != mark->head) {
		a->head = b->next;
		free(b);
	}
	a->head->used = mark->head_used;
	a->used = mark->used;
}

void
arena_clear(struct arena *a)
{
	struct arena_mark first = { .head = a->head };

	while (first.head->next != NULL)
		first.head = first.head->next;
	arena_rewind(a, &first);
}

void
arena_close(struct arena *a)
{
	if (a == NULL)
		return;
	arena_clear(a);
	free(a->head);
	free(a);
}

size_t
arena_used(const struct arena *a)
{
	return a->used;
}

size_t
arena_left(const struct arena *a)
{
	return a->limit - a->used;
}

void *
arena_alloc(struct arena *a, size_t n, size_t size)
{
	size_t want;
	void *p;

	if (size != 0 && n > a->limit / size)
		want = SIZE_MAX;
	else
		want = (n * size + ALIGN - 1) & ~(ALIGN - 1);
	if (want > a->limit || a->used > a->limit - want) {
		log_error("arena limit of %zu bytes reached: %zu times %zu",
		    a->limit, n, size);
		exit(EX_OSERR);
	}
	if (want > a->head->size - a->head->used)
		a->head = block_open(want > BLOCK ? want : BLOCK, a->head);
	p = a->head->data + a->head->used;
	a->head->used += want;
	a->used += want;
	return memset(p, 0, want);
}

char *
arena_strndup(struct arena *a, const char *s, size_t len)
{
	char *copy = arena_alloc(a, len + 1, 1);

	if (len > 0)
		(void)memcpy(copy, s, len);
	return copy;
}

char *
arena_strdup(struct arena *a, const char *s)
{
	return arena_strndup(a, s, strlen(s));
}

char *
arena_printf(struct arena *a, const char *fmt, ...)
{
	va_list ap;
	char *text;
	int len;

	va_start(ap, fmt);
	len = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	assert(len >= 0);
	text = arena_alloc(a, (size_t)len + 1, 1);
	va_start(ap, fmt);
	(void)vsnprintf(text, (size_t)len + 1, fmt, ap);
	va_end(ap);
	return text;
}

void *
mem_alloc(size_t n, size_t size)
{
	return must(calloc(n, size), n * size);
}

void *
mem_grow(void *p, size_t n, size_t size)
{
	return must(reallocarray(p, n, size), n * size);
}

void
mem_free(void *p)
{
	free(p);
}
