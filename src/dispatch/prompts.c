/* SPDX-License-Identifier: ISC */
/*
 * Sends the messages of notifiers that would wait behind thousands of others.
 *
 * While more is due than the children of notices.c send at once, another child
 * looks for receivers that stand apart from the many, and sends their messages.
 * It takes so few at a time that it always has places left.
 */
#include "dispatch/bag.h"
#include "queue/notice.h"

#define AFTER_MS 200 /* until then, the other children may send it */

static const struct err *
prompts_due(struct db *db, int64_t max, int64_t *out)
{
	return notice_due_since(db, AFTER_MS, max, out);
}

static enum sent
prompts_send(struct dispatch *d)
{
	return bag_send(d, true);
}

static bool
prompts_is_enabled(const struct dispatch *d)
{
	(void)d;
	return true;
}

static const struct sender_kind prompts = {
	.what = "notifiers",
	.children = 1,
	.drains = true,
	.is_enabled = prompts_is_enabled,
	.due = prompts_due,
	.send = prompts_send,
};

SENDER_FUNCTIONS(prompts, prompts)

const struct part prompts_part = { SENDER_MEMBERS(prompts) };
