/* SPDX-License-Identifier: ISC */
#include "core/time.h"

#include <time.h>

static int64_t
clock_ms(clockid_t id)
{
	struct timespec now;

	(void)clock_gettime(id, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int64_t
time_now_ms(void)
{
	return clock_ms(CLOCK_REALTIME);
}

int64_t
time_mono_ms(void)
{
	return clock_ms(CLOCK_MONOTONIC);
}
