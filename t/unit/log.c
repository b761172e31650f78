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

/* Replaces libc's clock: hours pass at once. */
int
clock_gettime(clockid_t which, struct timespec *ts)
{
	(void)which;
	ts->tv_sec = (time_t)(now / 1000);
	ts->tv_nsec = (long)(now % 1000) * 1000000;
	return 0;
}

/* Returns what was logged since the last call, without times. */
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
	is_str(said(), "one: broken\n", "a fault is logged at once");
	faults("one", "broken", 1000, 50);
	is_str(said(), "", "a fault is not logged again within fifty seconds");
	fault("two", "broken");
	is_str(said(), "two: broken\n", "a fault of another subject is logged");
	fault("one", "torn");
	is_str(said(), "one: torn (1001 times)\n",
	    "another fault of the subject is logged, with a count");
	faults("one", "broken", 10, 10);
	faults("one", "torn", 10, 10);
	is_str(said(), "", "known faults are not logged again");
	log_fault_over("one");
	is_str(said(), "one: recovered\n", "the end of a fault is logged");
	log_fault_over("one");
	log_fault_over("three");
	is_str(said(), "",
	    "the end of a fault is logged once, and not for other subjects");
	fault("one", "broken");
	is_str(said(), "one: broken\n",
	    "a fault that returns is logged at once");
	log_fault_over("one");
	log_fault_over("two");
	(void)said();
}

/* A fault every second for a day. */
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
	ok(n > 20 && n < 40,
	    "a fault is logged between 20 and 40 times a day: %d", n);
	is_int(at[1], MINUTE, "a fault is logged again after a minute");
	is_int(at[2], 3 * MINUTE,
	    "a fault is logged again after two more minutes");
	for (i = 2; i < n; i++)
		if (at[i] - at[i - 1] < at[i - 1] - at[i - 2])
			grows = false;
	ok(grows, "the intervals never shrink");
	is_int(at[n - 1] - at[n - 2], 60 * MINUTE,
	    "the interval grows to an hour");
	now += 24 * 60 * MINUTE;
	fault("day", "broken");
	is_int(lines(said()), 1,
	    "a fault is logged at once after a day of silence");
	now += MINUTE;
	fault("day", "broken");
	is_str(said(), "day: broken\n",
	    "the intervals start again at a minute");
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
	is_int(lines(said()), 4, "faults with changing texts are limited");
	for (i = 0; i < 1000; i++, now++) {
		(void)snprintf(text, sizeof(text), "subject %d", i);
		fault(text, "broken");
	}
	is_int(lines(said()), 1000, "faults of a thousand subjects are logged");
	fault("subject 999", "broken");
	is_str(said(), "", "the last subjects are remembered");
	fault("subject 1", "broken");
	is_int(lines(said()), 1, "the first subjects are forgotten");
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
