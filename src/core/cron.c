/* SPDX-License-Identifier: ISC */
#include "core/cron.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "core/num.h"
#include "core/str.h"
#include "core/zone.h"

#define MINUTE INT64_C(60)
#define DAY (INT64_C(24) * 3600)
#define OVERLAP_MAX (INT64_C(3) * 3600) /* more than clocks are set back */
/* A cron that names both fires once at each time. */
#define EXACT (1U << CRON_MINUTE | 1U << CRON_HOUR)
#define DAYS_MAX (100 * 366) /* 29 February may be on a Monday only then */
#define TEXT_SIZE 256
#define ITEM_SIZE 32

static const char *const months[] = { "jan", "feb", "mar", "apr", "may", "jun",
	"jul", "aug", "sep", "oct", "nov", "dec", NULL };
static const char *const weekdays[] = { "sun", "mon", "tue", "wed", "thu",
	"fri", "sat", NULL };

static const struct {
	int64_t min, max;
	const char *const *names; /* of the values from min */
	const char *fault;
} fields[CRON__MAX] = {
	[CRON_MINUTE] = { 0, 59, NULL, "the minute must be within 0-59" },
	[CRON_HOUR] = { 0, 23, NULL, "the hour must be within 0-23" },
	[CRON_DAY] = { 1, 31, NULL,
	    "the day of the month must be within 1-31" },
	[CRON_MONTH] = { 1, 12, months,
	    "the month must be within 1-12 or JAN-DEC" },
	[CRON_WEEKDAY] = { 0, 7, weekdays,
	    "the day of the week must be within 0-7 or SUN-SAT" },
};

static const struct {
	const char *name, *text;
} nicknames[] = {
	{ "@yearly", "0 0 1 1 *" },
	{ "@annually", "0 0 1 1 *" },
	{ "@monthly", "0 0 1 * *" },
	{ "@weekly", "0 0 * * 0" },
	{ "@daily", "0 0 * * *" },
	{ "@midnight", "0 0 * * *" },
	{ "@hourly", "0 * * * *" },
};

/* Reads up to one of the characters `until`, and skips it. */
static bool
piece(const char **at, const char *until, char out[ITEM_SIZE])
{
	const size_t len = strcspn(*at, until);

	if (len == 0 || len >= ITEM_SIZE)
		return false;
	(void)memcpy(out, *at, len);
	out[len] = '\0';
	*at += len;
	return true;
}

static bool
value_read(enum cron_unit unit, const char *text, int64_t *out)
{
	const char *const *names = fields[unit].names;
	int64_t i;

	for (i = 0; names != NULL && names[i] != NULL; i++)
		if (strcasecmp(text, names[i]) == 0) {
			*out = fields[unit].min + i;
			return true;
		}
	while (text[0] == '0' && text[1] != '\0')
		text++;
	return num_parse(text, fields[unit].min, fields[unit].max, out);
}

/* One item of a list: "*", "5", "1-5", each with "/2". Without a range, a step
 * goes up to the end. */
static bool
item_read(enum cron_unit unit, const char *item, uint64_t *set)
{
	char text[ITEM_SIZE];
	int64_t first = fields[unit].min, last = fields[unit].max, step = 1;
	bool is_one = false;

	if (!piece(&item, "-/", text))
		return false;
	if (strcmp(text, "*") != 0) {
		if (!value_read(unit, text, &first))
			return false;
		is_one = *item != '/';
		if (*item == '-') {
			item++;
			is_one = false;
			if (!piece(&item, "/", text) ||
			    !value_read(unit, text, &last) || last < first)
				return false;
		}
	}
	if (*item == '/' && !num_parse(item + 1, 1, 1000, &step))
		return false;
	if (*item != '/' && *item != '\0')
		return false;
	for (; first <= last; first += step) {
		*set |= UINT64_C(1) << first;
		if (is_one)
			break;
	}
	return true;
}

static bool
field_read(enum cron_unit unit, const char *text, struct cron *out)
{
	char item[ITEM_SIZE];

	if (text[0] != '*')
		out->restricted |= 1U << unit;
	for (;;) {
		if (!piece(&text, ",", item) ||
		    !item_read(unit, item, &out->set[unit]))
			return false;
		if (*text == '\0')
			return true;
		text++;
	}
}

#define SYNTAX                                                                 \
	"must have five fields, or be one of @hourly, @daily, @weekly, "       \
	"@monthly and @yearly"

static const char *
fields_read(const char *text, struct cron *out)
{
	char field[TEXT_SIZE];
	size_t len;
	int unit;

	for (unit = 0; unit < CRON__MAX; unit++) {
		text += strspn(text, " \t");
		len = strcspn(text, " \t");
		if (len == 0 || len >= sizeof(field))
			break;
		(void)memcpy(field, text, len);
		field[len] = '\0';
		if (!field_read((enum cron_unit)unit, field, out))
			return fields[unit].fault;
		text += len;
	}
	if (unit < CRON__MAX || text[strspn(text, " \t")] != '\0')
		return SYNTAX;
	return NULL;
}

static bool
has(const struct cron *cron, enum cron_unit unit, int value)
{
	return (cron->set[unit] >> value & 1) != 0;
}

static bool
is_day(const struct cron *cron, const struct tm *tm)
{
	const unsigned both = 1U << CRON_DAY | 1U << CRON_WEEKDAY;
	const bool day = has(cron, CRON_DAY, tm->tm_mday),
		   weekday = has(cron, CRON_WEEKDAY, tm->tm_wday);

	return has(cron, CRON_MONTH, tm->tm_mon + 1) &&
	    ((cron->restricted & both) == both ? day || weekday :
						 day && weekday);
}

/* The first minute from `clock` on that matches, both as if they were UTC; 0 if
 * there is none. */
static int64_t
match(const struct cron *cron, int64_t clock)
{
	struct tm tm;
	time_t at;
	int days;

	for (days = 0; days < DAYS_MAX; days++) {
		at = (time_t)clock;
		(void)gmtime_r(&at, &tm);
		for (; is_day(cron, &tm) && tm.tm_hour < 24; tm.tm_hour++) {
			for (;
			     has(cron, CRON_HOUR, tm.tm_hour) && tm.tm_min < 60;
			     tm.tm_min++)
				if (has(cron, CRON_MINUTE, tm.tm_min))
					return (int64_t)timegm(&tm);
			tm.tm_min = 0;
		}
		clock += DAY - clock % DAY;
	}
	return 0;
}

const char *
cron_parse(const char *text, struct cron *out)
{
	const char *fault;
	size_t i;

	(void)memset(out, 0, sizeof(*out));
	for (i = 0; i < sizeof(nicknames) / sizeof(nicknames[0]); i++)
		if (strcasecmp(text, nicknames[i].name) == 0)
			text = nicknames[i].text;
	if (text[0] == '@')
		return SYNTAX;
	if ((fault = fields_read(text, out)) != NULL)
		return fault;
	out->set[CRON_WEEKDAY] |= out->set[CRON_WEEKDAY] >> 7 & 1;
	return match(out, MINUTE) == 0 ? "no such day exists" : NULL;
}

/* The moment at which the zone's clock is set back, after `time` and at most
 * OVERLAP_MAX later; 0 if it is not. */
static int64_t
set_back_at(int64_t time)
{
	const int64_t before = zone_clock(time) - time;
	int64_t low = time, high = time + OVERLAP_MAX, middle;

	if (zone_clock(high) - high >= before)
		return 0;
	while (high - low > 1) {
		middle = low + (high - low) / 2;
		if (zone_clock(middle) - middle >= before)
			low = middle;
		else
			high = middle;
	}
	return high;
}

/* Rounds up to a minute. */
static int64_t
minute_from(int64_t clock)
{
	return clock + (MINUTE - clock % MINUTE) % MINUTE;
}

/* The next time at which a clock that was or will be set back shows a matching
 * time again; `first` is the next one that it has not shown before. */
static int64_t
again(const struct cron *cron, int64_t time, int64_t first)
{
	const int64_t offset = zone_clock(time) - time;
	const int64_t back = set_back_at(time);
	int64_t clock = zone_clock(time), next;

	clock = match(cron, clock - clock % MINUTE + MINUTE);
	next = clock - offset;
	if (next < first && zone_clock(next) == clock)
		return next;
	if (back == 0 || back >= first)
		return first;
	clock = zone_clock(back);
	next = back + match(cron, minute_from(clock)) - clock;
	return next < first ? next : first;
}

int64_t
cron_next(const struct cron *cron, const char *zone, int64_t time)
{
	int64_t clock, next;

	zone_enter(zone);
	clock = zone_clock(time);
	clock -= clock % MINUTE;
	do {
		clock = match(cron, clock + MINUTE);
		next = zone_time(clock);
	} while (next <= time);
	if ((cron->restricted & EXACT) != EXACT)
		next = again(cron, time, next);
	zone_leave();
	return next;
}
