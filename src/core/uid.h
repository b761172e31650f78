/* SPDX-License-Identifier: ISC */
/* The ranges of user ids that jobs run under (runner.uid_first,
 * runner.watch_uid_first). */
#ifndef SLIPWAY_CORE_UID_H
#define SLIPWAY_CORE_UID_H

#include <sys/types.h>

#include <stdbool.h>
#include <stdint.h>

#include "core/settings.h"

#define UID_WATCHERS 256 /* user ids for slipway-job itself */

struct uid_range {
	int64_t first;
	int64_t count;
};

/* Those of projects: every process under one belongs to a job. */
struct uid_range uid_range_projects(const struct settings_runner *);
/* Those of slipway-job itself, which watches over the steps. */
struct uid_range uid_range_watchers(const struct settings_runner *);

bool uid_range_has(struct uid_range, uid_t uid);
/* The user id for number `n`: the range repeats. */
uid_t uid_range_at(struct uid_range, int64_t n);
/* Whether the range ends before the last user id of the system. */
bool uid_range_fits(struct uid_range);
bool uid_range_overlap(struct uid_range, struct uid_range);

#endif
