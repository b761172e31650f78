/* SPDX-License-Identifier: ISC */
#include "core/uid.h"

#define UID_END INT64_C(4294967294) /* and -1 is no user */

struct uid_range
uid_range_projects(const struct settings_runner *r)
{
	return (struct uid_range){ r->uid_first, r->uid_count };
}

struct uid_range
uid_range_watchers(const struct settings_runner *r)
{
	return (struct uid_range){ r->watch_uid_first != 0 ?
		    r->watch_uid_first :
		    r->uid_first + r->uid_count,
		UID_WATCHERS };
}

bool
uid_range_has(struct uid_range r, uid_t uid)
{
	return (int64_t)uid >= r.first && (int64_t)uid < r.first + r.count;
}

uid_t
uid_range_at(struct uid_range r, int64_t n)
{
	return (uid_t)(r.first + n % r.count);
}

bool
uid_range_fits(struct uid_range r)
{
	return r.first + r.count <= UID_END;
}

bool
uid_range_overlap(struct uid_range a, struct uid_range b)
{
	return a.first < b.first + b.count && b.first < a.first + a.count;
}
