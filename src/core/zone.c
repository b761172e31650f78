/* SPDX-License-Identifier: ISC */
#include "core/zone.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/str.h"

#define FOLDER "/usr/share/zoneinfo/"
#define HOST_ZONE ":/etc/localtime" /* what libc uses without TZ */
#define NAME_SIZE 64
#define VALUE_SIZE 128 /* of TZ */
#define DAY (INT64_C(24) * 3600)

static char variable[3 + VALUE_SIZE] = "TZ=";
static char *const value = variable + 3;
static char before[VALUE_SIZE];

/* Files of the folder that are no time zones, or not the same on each host. */
static const char *const others[] = { "localtime", "posixrules", "Factory",
	NULL };

/* A name cannot leave the folder: it has no dots. */
static bool
is_name(const char *name)
{
	size_t i;

	for (i = 0; others[i] != NULL; i++)
		if (str_eq(name, others[i]))
			return false;
	return strlen(name) < NAME_SIZE &&
	    str_matches(name,
		"[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+){0,2}") &&
	    !str_starts(name, "posix/") && !str_starts(name, "right/");
}

bool
zone_is_known(const char *name)
{
	char path[sizeof(FOLDER) + NAME_SIZE], magic[4];
	bool known;
	int fd;

	if (!is_name(name))
		return false;
	(void)snprintf(path, sizeof(path), FOLDER "%s", name);
	if ((fd = open(path, O_RDONLY | O_CLOEXEC)) == -1)
		return false;
	known = read(fd, magic, sizeof(magic)) == sizeof(magic) &&
	    memcmp(magic, "TZif", sizeof(magic)) == 0;
	(void)close(fd);
	return known;
}

void
zone_enter(const char *name)
{
	const char *old = getenv("TZ");

	(void)snprintf(before, sizeof(before), "%s",
	    old == NULL ? HOST_ZONE : old);
	if (old != value)
		(void)putenv(variable);
	(void)snprintf(value, VALUE_SIZE, ":" FOLDER "%s", name);
	tzset();
}

void
zone_leave(void)
{
	(void)memcpy(value, before, VALUE_SIZE);
	tzset();
}

int64_t
zone_clock(int64_t time)
{
	const time_t at = (time_t)time;
	struct tm tm;

	return localtime_r(&at, &tm) == NULL ? time : time + tm.tm_gmtoff;
}

static int64_t
offset_at(int64_t time)
{
	return zone_clock(time) - time;
}

/* The offset of the day before is right unless it changed since; then the right
 * moment is between the ones that both offsets give. */
int64_t
zone_time(int64_t clock)
{
	int64_t high = clock - offset_at(clock - DAY), low, middle;

	if (zone_clock(high) == clock)
		return high;
	low = clock - offset_at(high);
	if (low > high) {
		middle = low;
		low = high;
		high = middle;
	}
	while (high - low > 1) {
		middle = low + (high - low) / 2;
		if (zone_clock(middle) < clock)
			low = middle;
		else
			high = middle;
	}
	return zone_clock(low) == clock ? low : high;
}
