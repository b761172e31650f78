/* SPDX-License-Identifier: ISC */
/*
 * Times of schedules, in the five fields of crontab(5): minute, hour, day of
 * the month, month, day of the week; with names, lists, ranges and steps, or
 * @hourly … @yearly. A field is restricted unless it starts with "*"; if both
 * fields of days are restricted, a day has to match one of them.
 */
#ifndef SLIPWAY_CORE_CRON_H
#define SLIPWAY_CORE_CRON_H

#include <stdint.h>

enum cron_unit {
	CRON_MINUTE,
	CRON_HOUR,
	CRON_DAY,
	CRON_MONTH,
	CRON_WEEKDAY,
	CRON__MAX
};

struct cron {
	uint64_t set[CRON__MAX]; /* a bit per value; Sunday is 0 */
	unsigned restricted;     /* a bit per field */
};

/* Returns NULL, or what is wrong with the text: also that its time never
 * comes. */
const char *cron_parse(const char *text, struct cron *out);
/* The first time after `time`, in seconds since 1970, in a time zone that is
 * known. A time that the clock skips comes at the end of the gap.  When the clock
 * is set back, it shows times twice: a cron whose minute or hour starts with "*"
 * comes at each of them, as in cron(8) of Debian, any other one only the first
 * time. */
int64_t cron_next(const struct cron *, const char *zone, int64_t time);

#endif
