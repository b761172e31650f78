/* SPDX-License-Identifier: ISC */
#include "dispatch/sender.h"

#include <sys/wait.h>

#include <stdlib.h>
#include <unistd.h>

#include "core/log.h"
#include "core/str.h"
#include "dispatch/backoff.h"
#include "dispatch/child.h"
#include "dispatch/context.h"

#define LOOK_MS 5000 /* between looks at the table */
#define MORE_MS 250  /* the same, while something may be due */
#define PAUSE_MIN 1000
#define PAUSE_MAX 60000
#define DELAY_MAX 3600 /* seconds */

/* The place of a child in the table; -1 if it is not there. */
static int
place_of(const struct sender *s, pid_t pid)
{
	size_t i;

	for (i = 0; i < SENDER_PLACES; i++)
		if (s->child[i] == pid)
			return (int)i;
	return -1;
}

static size_t
children_count(const struct sender *s)
{
	size_t n = 0, i;

	for (i = 0; i < SENDER_PLACES; i++)
		n += s->child[i] != 0;
	return n;
}

/* How many children claim messages after a time. */
static size_t
children_after(const struct sender *s, int64_t at)
{
	size_t n = 0, i;

	for (i = 0; i < SENDER_PLACES; i++)
		n += s->child[i] != 0 && s->until[i] > at;
	return n;
}

/* When another child may start. */
static int64_t
place_at(const struct sender_kind *kind, const struct sender *s)
{
	const size_t n = children_count(s);
	int64_t at = INT64_MAX;
	size_t i;

	if (n < kind->children)
		return 0;
	if (!kind->drains || n == SENDER_PLACES)
		return at;
	for (i = 0; i < SENDER_PLACES; i++)
		if (s->child[i] != 0 && s->until[i] < at &&
		    children_after(s, s->until[i]) < kind->children)
			at = s->until[i];
	return at;
}

static void
child_ended(struct sender *s, int status)
{
	const bool sent = WIFEXITED(status) && WEXITSTATUS(status) == SENT;

	s->pause = sent ? 0 : backoff(s->pause, PAUSE_MIN, PAUSE_MAX);
	s->at = time_mono_ms() + s->pause;
}

static void
child_start(const struct sender_kind *kind, struct sender *s,
    struct dispatch *d, int place)
{
	const pid_t pid = child_fork(-1);

	if (pid == 0)
		_exit((int)kind->send(d));
	if (pid == -1) {
		log_err(err_errno("fork"), kind->what);
		child_ended(s, -1);
		return;
	}
	s->child[place] = pid;
	s->until[place] = time_mono_ms() + SENDER_TURN_MS;
}

int64_t
sender_next(const struct sender_kind *kind, const struct sender *s,
    const struct dispatch *d)
{
	const int64_t at = place_at(kind, s);

	if (!kind->is_enabled(d))
		return INT64_MAX;
	return at > s->at ? at : s->at;
}

void
sender_work(const struct sender_kind *kind, struct sender *s,
    struct dispatch *d, int64_t now)
{
	int64_t ms;

	if (now < sender_next(kind, s, d))
		return;
	s->is_asked = false;
	s->looked = now;
	s->at = now + LOOK_MS;
	if (!database_done(&d->database, kind->due(d->db, LOOK_MS, &ms),
		kind->what))
		return;
	s->at = now + (ms > 0 ? ms : MORE_MS);
	if (ms > 0)
		return;
	arena_clear(d->a);
	child_start(kind, s, d, place_of(s, 0));
}

void
sender_events(struct sender *s, unsigned events)
{
	if ((events & EVENT_RELOAD) != 0)
		s->pause = s->at = 0;
	if ((events & (EVENT_STATUS | EVENT_WAKE)) == 0 || s->pause != 0)
		return;
	s->is_asked = true;
	if (s->at > s->looked + MORE_MS)
		s->at = s->looked + MORE_MS;
}

void
sender_child(struct sender *s, pid_t pid, int status)
{
	const int place = place_of(s, pid);

	if (place == -1)
		return;
	s->child[place] = 0;
	child_ended(s, status);
}

bool
sender_is_idle(const struct sender_kind *kind, const struct sender *s,
    const struct dispatch *d, int64_t now)
{
	const int64_t next = sender_next(kind, s, d);

	if (children_count(s) > 0 || (s->is_asked && next != INT64_MAX))
		return false;
	return next > now;
}

int64_t
sender_delay(int64_t first, int64_t attempts, int64_t min)
{
	int64_t seconds = first, i;

	for (i = 1; i < attempts && seconds < DELAY_MAX; i++)
		seconds *= 2;
	if (seconds < min)
		seconds = min;
	if (seconds > DELAY_MAX)
		seconds = DELAY_MAX;
	return seconds + (int64_t)arc4random_uniform((uint32_t)seconds / 4 + 1);
}
