/* SPDX-License-Identifier: ISC */
#include "web/deadline.h"

#include <sys/socket.h>
#include <sys/time.h>

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <time.h>
#include <unistd.h>

#include "core/str.h"

/* Monotonic milliseconds, 0 = none: the deadline, and when the timer fires.
 * Both are shared with the signal handler, hence atomic. */
static atomic_int_least64_t due, fires;
static volatile sig_atomic_t due_fd, due_status;
static void (*volatile due_last)(void); /* NULL = shut the connection down */

/* Kills the process if the handler did not end it. */
static timer_t killer;
static bool is_doomed;

/* 0 = never. */
static void
killer_set(int64_t ms)
{
	const struct itimerspec at = {
		.it_value = { .tv_sec = (time_t)(ms / 1000),
		    .tv_nsec = (long)(ms % 1000) * 1000000 },
	};

	if (ms != 0 || is_doomed)
		(void)timer_settime(killer, 0, &at, NULL);
	is_doomed = ms != 0;
}

static void
timer_set(int64_t now, int64_t ms)
{
	const struct itimerval timer = {
		.it_value = { .tv_sec = ms / 1000,
		    .tv_usec = ms % 1000 * 1000 },
	};

	atomic_store(&fires, now + ms);
	(void)setitimer(ITIMER_REAL, &timer, NULL);
}

/* Calls only async-signal-safe functions. A handler that exceeds its time may
 * be anywhere, so only ending the process stops it; MariaDB then rolls back its
 * transaction. */
static void
on_alarm(int number)
{
	const int64_t until = atomic_load(&due), now = time_mono_ms();
	const int saved = errno;

	(void)number;
	if (until == 0) {
		atomic_store(&fires, 0);
	} else if (now < until) {
		timer_set(now, until - now);
	} else {
		atomic_store(&fires, 0);
		if (due_last != NULL) {
			due_last();
			_exit(due_status);
		}
		(void)shutdown(due_fd, SHUT_RDWR);
	}
	errno = saved;
}

const struct err *
deadline_init(void)
{
	/* a timer that fires early must not interrupt a call */
	struct sigaction action = { .sa_handler = on_alarm,
		.sa_flags = SA_RESTART };

	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL,
		.sigev_signo = SIGKILL };

	(void)sigemptyset(&action.sa_mask);
	if (sigaction(SIGALRM, &action, NULL) == -1)
		return err_errno("sigaction");
	if (timer_create(CLOCK_MONOTONIC, &event, &killer) == -1)
		return err_errno("timer_create");
	return NULL;
}

static void
deadline_set(int64_t ms)
{
	const int64_t now = time_mono_ms();
	int64_t next;

	atomic_store(&due, now + ms);
	next = atomic_load(&fires);
	if (next == 0 || next > now + ms)
		timer_set(now, ms);
}

void
deadline_close(int fd, int64_t ms)
{
	deadline_clear();
	due_fd = fd;
	due_last = NULL;
	deadline_set(ms);
}

void
deadline_exit(int64_t ms, void (*last)(void), int status)
{
	deadline_clear();
	due_last = last;
	due_status = status;
	deadline_set(ms);
	killer_set(ms + DEADLINE_HUNG_MS);
}

void
deadline_clear(void)
{
	atomic_store(&due, 0);
	killer_set(0);
}
