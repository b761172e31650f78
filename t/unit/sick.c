/* SPDX-License-Identifier: ISC */
/* When a sick runner probes. */
#include "dispatch/sick.h"

#include "core/str.h"
#include "tap.h"

#define SOON 500 /* less than the shortest pause that follows a second report */

/* Whether the next probe is due now. */
static bool
is_due(const struct sick *s)
{
	return s->at <= time_mono_ms();
}

int
main(void)
{
	struct sick s = { .since = 0 };
	int64_t pause;
	int i;

	sick_suspect(&s, 7, "No room.");
	ok(s.since != 0 && is_due(&s), "the first probe comes at once");
	pause = s.pause;
	for (i = 0; i < 5; i++) {
		sick_recover(&s);
		sick_suspect(&s, 7, "No room.");
	}
	ok(is_due(&s) && s.pause == pause,
	    "a project that the disk fails again and again stops no other one");
	sick_recover(&s);
	sick_suspect(&s, 8, "No room.");
	ok(s.at > time_mono_ms() + SOON && s.pause > pause,
	    "the pause grows if the disk fails another project as well");
	pause = s.pause;
	sick_report(&s, "The spool cannot be written.");
	ok(s.pause > pause, "the pause grows if a probe fails");
	sick_recover(&s);
	sick_over(&s);
	is_int(s.pause, 0, "there is no pause after a deployment has run");
	return tap_done();
}
