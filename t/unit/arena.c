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
	ok(aligned, "every piece is aligned");
	ok(zero, "every piece is zeroed");
	arena_clear(a);
	is_int((long long)arena_used(a), 0, "cleared, nothing is used");
	p = arena_alloc(a, 4000, 1);
	ok(is_zero(p, 4000), "memory that was used before is zeroed again");
	ok(arena_alloc(a, 0, 8) != NULL, "nothing is also something");
	p = arena_alloc(a, 100000, 1);
	ok(is_zero(p, 100000), "a piece may be larger than a block");
	arena_close(a);
	arena_close(NULL);
	ok(true, "no arena may be closed");
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
	ok(zero, "what was given back ten times is zeroed again");
	is_str(kept, "kept", "what came before the mark stays");
	is_int((long long)arena_used(a), (long long)mark.used,
	    "and alone counts");
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
	is_str(copy, "hello", "a copy stays as it was");
	is_str(arena_strndup(a, "hello", 2), "he", "a part ends in NUL");
	is_str(arena_strndup(a, NULL, 0), "", "nothing is an empty string");
	is_str(arena_printf(a, "%d-%s", 4, "x"), "4-x", "formatted");
	is_int((long long)strlen(arena_printf(a, "%50000d", 1)), 50000,
	    "formatted text may be larger than a block");
	arena_close(a);
}

/* The exit status of a child that asks for too much. */
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
	is_int(child(90000, 1), 0, "up to the limit there is memory");
	is_int(child(99500, 1), EX_OSERR, "past it the process ends");
	is_int(child(SIZE_MAX / 2, 4), EX_OSERR,
	    "a product that wraps round is refused");
	is_int(child(SIZE_MAX, 1), EX_OSERR, "and one that rounds up to 0");
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
