/* SPDX-License-Identifier: ISC */
/* The Test Anything Protocol, for unit tests in C. */
#ifndef SLIPWAY_T_TAP_H
#define SLIPWAY_T_TAP_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* How many of n random cases to try. A sanitizer takes many times as long, and the
 * plain build judges the results: a tenth of them. */
#ifdef __SANITIZE_ADDRESS__
#define RANDOM_CASES(n) ((n) / 10)
#else
#define RANDOM_CASES(n) (n)
#endif

static int tap_count, tap_failed;

__attribute__((format(printf, 2, 3))) static inline bool
ok(bool yes, const char *fmt, ...)
{
	va_list ap;

	tap_count++;
	if (!yes)
		tap_failed++;
	(void)printf("%sok %d - ", yes ? "" : "not ", tap_count);
	va_start(ap, fmt);
	(void)vprintf(fmt, ap);
	va_end(ap);
	(void)putchar('\n');
	(void)fflush(stdout);
	return yes;
}

static inline bool
is_str(const char *got, const char *want, const char *name)
{
	bool same = got == NULL || want == NULL ? got == want :
						  strcmp(got, want) == 0;

	if (!ok(same, "%s", name))
		(void)printf("# got:  %s\n# want: %s\n",
		    got == NULL ? "(null)" : got,
		    want == NULL ? "(null)" : want);
	return same;
}

static inline bool
is_int(long long got, long long want, const char *name)
{
	if (!ok(got == want, "%s", name))
		(void)printf("# got:  %lld\n# want: %lld\n", got, want);
	return got == want;
}

/* At the end of main: return tap_done(); */
static inline int
tap_done(void)
{
	(void)printf("1..%d\n", tap_count);
	return tap_failed == 0 ? 0 : 1;
}

#endif
