/* SPDX-License-Identifier: ISC */
/*
 * Included before every source but err.c and arena.c when clang-tidy looks at
 * it.  The analyzer sees one file at a time and must be told that an error
 * that was made is not NULL, else every caller seems to go on after a failure,
 * and that memory never is.
 */
#include "core/arena.h"

__attribute__((unused)) static const struct err lint_made;

/* Arguments count as used, and texts are checked; a function of many arguments is
 * never looked into. */
void lint_new(enum err_code, const char *fmt, ...) PRINTFLIKE(2, 3);
void lint_errno(const char *fmt, ...) PRINTFLIKE(1, 2);
void lint_wrap(const struct err *, const char *fmt, ...) PRINTFLIKE(2, 3);
void lint_number(enum err_code, int, const char *fmt, ...) PRINTFLIKE(3, 4);

__attribute__((unused)) static void *
lint_memory(void *p)
{
	if (p == NULL)
		__builtin_unreachable();
	return p;
}

#define err_new(...) (lint_new(__VA_ARGS__), &lint_made)
#define err_public(...) (lint_new(__VA_ARGS__), &lint_made)
#define err_errno(...) (lint_errno(__VA_ARGS__), &lint_made)
#define err_wrap(...) (lint_wrap(__VA_ARGS__), &lint_made)
#define err_public_number(...) (lint_number(__VA_ARGS__), &lint_made)
#define err_number(...) (lint_number(__VA_ARGS__), &lint_made)
#define arena_open(...) ((struct arena *)lint_memory(arena_open(__VA_ARGS__)))
#define arena_alloc(...) lint_memory(arena_alloc(__VA_ARGS__))
#define arena_strndup(...) ((char *)lint_memory(arena_strndup(__VA_ARGS__)))
#define arena_strdup(...) ((char *)lint_memory(arena_strdup(__VA_ARGS__)))
#define arena_printf(...) ((char *)lint_memory(arena_printf(__VA_ARGS__)))
#define mem_alloc(...) lint_memory(mem_alloc(__VA_ARGS__))
#define mem_grow(...) lint_memory(mem_grow(__VA_ARGS__))
