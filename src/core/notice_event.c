/* SPDX-License-Identifier: ISC */
#include "core/notice_event.h"

#include "core/str.h"

const struct notice_event_kind notice_events[NOTICE__MAX] = {
#define X(id, called, kind, says) [id] = { .name = (called), .type = (kind) },
	NOTICE_EVENTS(X, X)
#undef X
};

#define NAME(id, name, ...) name,
#define NO_NAME(...)
const char *const notice_event_names[] = { NOTICE_EVENTS(NAME, NO_NAME) NULL };

enum notice_event
notice_event_find(const char *name)
{
	enum notice_event event;

	for (event = NOTICE_STARTED; event < NOTICE__MAX; event++)
		if (str_eq(notice_events[event].name, name))
			break;
	return event;
}
