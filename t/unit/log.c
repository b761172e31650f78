/* SPDX-License-Identifier: ISC */
#include "core/log.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tap.h"

#define MINUTE INT64_C(60000)

static int64_t now = 1000; /* milliseconds */
static int out;

/* In the place of libc's: hours pass at once. */
int
clock_gettime(clockid_t which, struct timespec *ts)
{
	(void)which;
	ts->tv_sec = (time_t)(now / 1000);
	ts->tv_nsec = (long)(now % 1000) * 1000000;
	return 0;
}

/* What was logged since the last time, without times; static memory. */
static const char *
said(void)
{
	static char text[1 << 16];
	char *from, *to = text;
	ssize_t got = pread(out, text, sizeof(text) - 1, 0);
	const char *mark;

	text[got > 0 ? got : 0] = '\0';
	for (from = text; (mark = strstr(from, "] ")) != NULL;) {
		from = strchr(mark, '\n') + 1;
		mark += 2;
		(void)memmove(to, mark, (size_t)(from - mark));
		to += from - mark;
	}
	*to = '\0';
	if (ftruncate(out, 0) == -1 || lseek(out, 0, SEEK_SET) == -1)
		exit(1);
	return text;
}

static void
fault(const char *subject, const char *words)
{
	log_fault(err_new(ERR_INTERNAL, "%s", words), subject);
}

static void
faults(const char *subject, const char *words, int n, int64_t apart)
{
	for (; n > 0; n--, now += apart)
		fault(subject, words);
}

static int
lines(const char *text)
{
	int n = 0;

	for (; *text != '\0'; text++)
		n += *text == '\n';
	return n;
}

static void
said_once(void)
{
	fault("one", "broken");
	is_str(said(), "one: broken\n", "a fault is said at once");
	faults("one", "broken", 1000, 50);
	is_str(said(), "", "and not again in the next fifty seconds");
	fault("two", "broken");
	is_str(said(), "two: broken\n", "that of another is");
	fault("one", "torn");
	is_str(said(), "one: torn (1001 times)\n", "as are other words");
	faults("one", "broken", 10, 10);
	faults("one", "torn", 10, 10);
	is_str(said(), "", "but not those that were said");
	log_fault_over("one");
	is_str(said(), "one: all is well again\n", "it is over");
	log_fault_over("one");
	log_fault_over("three");
	is_str(said(), "", "which is said once, and of no other");
	fault("one", "broken");
	is_str(said(), "one: broken\n", "what comes again is new");
	log_fault_over("one");
	log_fault_over("two");
	(void)said();
}

/* Every second for a day. */
static void
said_ever_more_seldom(void)
{
	int64_t until = now + 24 * 60 * MINUTE, first = now, at[64];
	int n = 0, i;
	bool grows = true;

	for (; now < until; now += 1000) {
		fault("day", "broken");
		if (lseek(out, 0, SEEK_CUR) > 0) {
			(void)said();
			if (n < 64)
				at[n++] = now - first;
		}
	}
	ok(n > 20 && n < 40, "some dozens of times in a day: %d", n);
	is_int(at[1], MINUTE, "after a minute");
	is_int(at[2], 3 * MINUTE, "after two more");
	for (i = 2; i < n; i++)
		if (at[i] - at[i - 1] < at[i - 1] - at[i - 2])
			grows = false;
	ok(grows, "never sooner than before");
	is_int(at[n - 1] - at[n - 2], 60 * MINUTE, "at last once an hour");
	now += 24 * 60 * MINUTE;
	fault("day", "broken");
	is_int(lines(said()), 1, "after a day of silence at once");
	now += MINUTE;
	fault("day", "broken");
	is_str(said(), "day: broken\n", "then after a minute again");
	log_fault_over("day");
	(void)said();
}

static void
no_flood(void)
{
	char text[64];
	int i;

	for (i = 0; i < 10000; i++, now++) {
		(void)snprintf(text, sizeof(text), "broken at %d", i);
		fault("new words", text);
	}
	is_int(lines(said()), 4, "ever new words are no flood");
	for (i = 0; i < 1000; i++, now++) {
		(void)snprintf(text, sizeof(text), "subject %d", i);
		fault(text, "broken");
	}
	is_int(lines(said()), 1000, "a thousand subjects are each said");
	fault("subject 999", "broken");
	is_str(said(), "", "the last are remembered");
	fault("subject 1", "broken");
	is_int(lines(said()), 1, "the first are not");
}

int
main(void)
{
	char path[] = "/tmp/slipway-log-XXXXXX";

	(void)unsetenv("JOURNAL_STREAM");
	log_init("test", 0);
	if ((out = mkstemp(path)) == -1 || unlink(path) == -1 ||
	    fcntl(out, F_SETFL, O_APPEND) == -1 ||
	    dup2(out, STDERR_FILENO) == -1)
		return 1;
	said_once();
	said_ever_more_seldom();
	no_flood();
	return tap_done();
}
