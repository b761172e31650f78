/* SPDX-License-Identifier: ISC */
#include "core/arena.h"

#include <sys/wait.h>

#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "tap.h"

static bool
is_zero(const unsigned char *p, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++)
		if (p[i] != 0)
			return false;
	return true;
}

static void
memory_is_fresh(void)
{
	struct arena *a = arena_open(1 << 20);
	unsigned char *p;
	size_t i;
	bool aligned = true, zero = true;

	for (i = 0; i < 300; i++) {
		p = arena_alloc(a, i, 7);
		aligned = aligned && (uintptr_t)p % _Alignof(max_align_t) == 0;
		zero = zero && is_zero(p, i * 7);
		(void)memset(p, 0xff, i * 7);
	}
	ok(aligned, "arena_alloc aligns every piece");
	ok(zero, "arena_alloc zeroes every piece");
	arena_clear(a);
	is_int((long long)arena_used(a), 0, "a cleared arena uses no memory");
	p = arena_alloc(a, 4000, 1);
	ok(is_zero(p, 4000), "arena_alloc zeroes memory that was used before");
	ok(arena_alloc(a, 0, 8) != NULL,
	    "arena_alloc of no items returns a pointer");
	p = arena_alloc(a, 100000, 1);
	ok(is_zero(p, 100000), "a piece may be larger than a block");
	arena_close(a);
	arena_close(NULL);
	ok(true, "arena_close accepts NULL");
}

static void
rewound_to_a_mark(void)
{
	struct arena *a = arena_open(300000);
	const char *kept = arena_strdup(a, "kept");
	struct arena_mark mark = arena_mark(a);
	unsigned char *p;
	size_t i;
	bool zero = true;

	for (i = 0; i < 10; i++) {
		p = arena_alloc(a, 100000, 2);
		zero = zero && is_zero(p, 200000);
		p = arena_alloc(a, 1000, 1);
		zero = zero && is_zero(p, 1000);
		(void)memset(p, 0xff, 1000);
		arena_rewind(a, &mark);
	}
	ok(zero, "arena_alloc zeroes memory that was rewound ten times");
	is_str(kept, "kept",
	    "a rewind keeps what was allocated before the mark");
	is_int((long long)arena_used(a), (long long)mark.used,
	    "after a rewind only what came before the mark counts");
	arena_rewind(a, &mark);
	arena_close(a);
}

static void
strings_are_copied(void)
{
	struct arena *a = arena_open(1 << 20);
	char text[] = "hello";
	char *copy = arena_strdup(a, text);

	text[0] = 'j';
	is_str(copy, "hello", "arena_strdup copies its text");
	is_str(arena_strndup(a, "hello", 2), "he",
	    "arena_strndup ends a part of a string with a NUL");
	is_str(arena_strndup(a, NULL, 0), "",
	    "arena_strndup of NULL returns an empty string");
	is_str(arena_printf(a, "%d-%s", 4, "x"), "4-x",
	    "arena_printf formats its arguments");
	is_int((long long)strlen(arena_printf(a, "%50000d", 1)), 50000,
	    "arena_printf writes text larger than a block");
	arena_close(a);
}

/* Returns the exit status of a child that allocates this much. */
static int
child(size_t n, size_t size)
{
	pid_t pid = fork();
	struct arena *a;
	int status = 0, null;

	if (pid == 0) {
		if ((null = open("/dev/null", O_WRONLY)) != -1)
			(void)dup2(null, STDERR_FILENO);
		a = arena_open(100000);
		(void)arena_alloc(a, 1000, 1);
		(void)arena_alloc(a, n, size);
		_exit(0);
	}
	if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		return -1;
	return WEXITSTATUS(status);
}

static void
limit_holds(void)
{
	is_int(child(90000, 1), 0, "an allocation up to the limit succeeds");
	is_int(child(99500, 1), EX_OSERR,
	    "an allocation above the limit exits");
	is_int(child(SIZE_MAX / 2, 4), EX_OSERR, "a size that overflows exits");
	is_int(child(SIZE_MAX, 1), EX_OSERR,
	    "a size that rounds up to 0 exits");
}

int
main(void)
{
	memory_is_fresh();
	rewound_to_a_mark();
	strings_are_copied();
	limit_holds();
	return tap_done();
}
