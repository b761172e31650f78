/* SPDX-License-Identifier: ISC */
#include "dispatch/unstarted.h"

#include "dispatch/context.h"

/* ERR_PRECONDITION: another dispatcher holds it, so it is settled here. */
static bool
settled(struct dispatch *d, const struct err *e, const char *what)
{
	d->events |= EVENT_STATUS;
	if (e != NULL && e->code == ERR_PRECONDITION)
		return true;
	if (database_done(&d->database, e, what))
		return true;
	d->database.is_doubtful = true;
	return false;
}

bool
unstarted_release(struct dispatch *d, int64_t id, int64_t epoch)
{
	return settled(d, queue_release(d->db, id, epoch),
	    "return a deployment to the queue");
}

bool
unstarted_end(struct dispatch *d, const struct queue_end *end)
{
	return settled(d, queue_end(d->db, end), "end a deployment");
}
