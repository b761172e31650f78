/* SPDX-License-Identifier: ISC */
/* When a sender may start another child. */
#include "dispatch/sender.h"

#include "dispatch/child.h"
#include "dispatch/database.h"
#include "tap.h"

#define TURN 5000 /* when the first child ends its turn */

/* The loop's; no child is started here. */
pid_t
child_fork(int keep)
{
	(void)keep;
	return -1;
}

bool
database_done(struct database *database, const struct err *e, const char *what)
{
	(void)database;
	(void)e;
	(void)what;
	return false;
}

static bool
always(const struct dispatch *d)
{
	(void)d;
	return true;
}

/* As if n children had been started a second after each other. */
static struct sender
sender_with(size_t n)
{
	struct sender s = { .at = 100 };
	size_t i;

	for (i = 0; i < n; i++) {
		s.child[i] = (pid_t)(1000 + i);
		s.until[i] = TURN + 1000 * (int64_t)i;
	}
	return s;
}

int
main(void)
{
	const struct sender_kind ends = { .children = 2, .is_enabled = always };
	const struct sender_kind drains = { .children = 2,
		.drains = true,
		.is_enabled = always };
	struct sender s = sender_with(1);

	(void)ok(sender_next(&ends, &s, NULL) == 100, "a place is free");
	s = sender_with(2);
	(void)ok(sender_next(&ends, &s, NULL) == INT64_MAX,
	    "with all children, it waits for the end of one");
	(void)ok(sender_next(&drains, &s, NULL) == TURN,
	    "one that drains frees its place at the end of its turn");
	s = sender_with(3);
	(void)ok(sender_next(&drains, &s, NULL) == TURN + 1000,
	    "the next one comes at the end of another turn");
	sender_child(&s, 1001, 0);
	s.at = 0;
	(void)ok(sender_next(&drains, &s, NULL) == TURN,
	    "an end frees a place, too");
	s = sender_with(SENDER_PLACES);
	(void)ok(sender_next(&drains, &s, NULL) == INT64_MAX,
	    "the number of children has a limit");
	return tap_done();
}
