/* SPDX-License-Identifier: ISC */
#include "dispatch/sick.h"

#include <stdio.h>
#include <string.h>

#include "core/log.h"
#include "core/str.h"
#include "core/utf8.h"
#include "dispatch/backoff.h"

#define PAUSE_MIN 1000
#define PAUSE_MAX 300000

void
sick_report(struct sick *s, const char *why)
{
	const int64_t now = time_mono_ms();
	const int64_t pause = s->pause;

	s->is_asked = false;
	s->pause = backoff(pause, PAUSE_MIN, PAUSE_MAX);
	s->at = pause == 0 ? now : now + backoff_jitter(pause);
	if (s->since != 0 && strncmp(s->why, why, sizeof(s->why) - 1) == 0)
		return;
	if (s->since == 0)
		s->since = now;
	s->is_told = false;
	(void)snprintf(s->why, sizeof(s->why), "%s", why);
	utf8_drop_partial(s->why);
	log_error("this runner cannot start deployments: %s", s->why);
}

void
sick_suspect(struct sick *s, int64_t project, const char *why)
{
	const int64_t pause = s->pause;
	const bool is_again = project == s->project;

	sick_report(s, why);
	s->project = project;
	if (is_again) {
		s->pause = pause;
		s->at = time_mono_ms();
	}
}

void
sick_recover(struct sick *s)
{
	s->is_asked = false;
	if (s->since == 0)
		return;
	s->since = 0;
	s->is_told = false;
	s->why[0] = '\0';
	log_info("this runner can start deployments again");
}

void
sick_over(struct sick *s)
{
	if (s->since == 0)
		s->pause = 0;
}
