/* SPDX-License-Identifier: ISC */
/*
 * Local time in the time zones of the host's tzdata.
 *
 * libc knows one zone at a time, that of TZ. A caller enters a zone, converts,
 * and leaves it; in between, nothing else may use local time. TZ is changed in
 * place, in memory that stays part of the environment, so that a thread which
 * reads other variables (the resolver of libcurl) is not disturbed.
 */
#ifndef SLIPWAY_CORE_ZONE_H
#define SLIPWAY_CORE_ZONE_H

#include <stdbool.h>
#include <stdint.h>

/* Whether the host knows the zone, by its IANA name: Europe/Berlin, UTC. */
bool zone_is_known(const char *name);
/* Enters a zone that is known. */
void zone_enter(const char *name);
void zone_leave(void);
/* What a clock in the zone shows at that time, in seconds as if it were UTC. */
int64_t zone_clock(int64_t time);
/* The first moment at which a clock in the zone shows that time or a later one:
 * of a time that exists twice the first, of one that does not exist the end of
 * the gap. */
int64_t zone_time(int64_t clock);

#endif
