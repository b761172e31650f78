/* SPDX-License-Identifier: ISC */
/* Sends the messages of notifiers that are no mails. */
#include "dispatch/bag.h"
#include "queue/notice.h"

static enum sent
notices_send(struct dispatch *d)
{
	return bag_send(d, false);
}

static bool
notices_is_enabled(const struct dispatch *d)
{
	(void)d;
	return true;
}

static const struct sender_kind notices = {
	.what = "notifiers",
	.children = SENDER_CHILDREN,
	.drains = true,
	.is_enabled = notices_is_enabled,
	.due = notice_due_other,
	.send = notices_send,
};

SENDER_FUNCTIONS(notices, notices)

const struct part notices_part = { SENDER_MEMBERS(notices) };
