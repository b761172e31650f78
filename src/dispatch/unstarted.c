/* SPDX-License-Identifier: ISC */
#include "dispatch/unstarted.h"

#include "core/log.h"
#include "dispatch/context.h"
#include "queue/returned.h"

#define RETURNS_MAX 5 /* of one deployment, by all runners */

/* ERR_PRECONDITION: another dispatcher holds it, so it is settled here. */
static bool
is_settled(struct dispatch *d, const struct err *e, const char *what)
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
	return is_settled(d, queue_release(d->db, id, epoch),
	    "return a deployment to the queue");
}

enum unstarted_how
unstarted_give_back(struct dispatch *d, const struct queue_end *end,
    enum unstarted_where where)
{
	struct returned returned = { .others = true };

	/* if the database is away, the release fails, too, and is repeated */
	(void)database_done(&d->database,
	    returned_count(d->db, d->a, end->id, d->name, &returned),
	    "count what did not start");
	if (returned.n > RETURNS_MAX ||
	    (where == UNSTARTED_ELSEWHERE && !returned.others)) {
		(void)unstarted_end(d, end);
		return UNSTARTED_ENDED;
	}
	log_warn("%lld: returned to the queue: %s", (long long)end->id,
	    end->detail);
	(void)unstarted_release(d, end->id, end->epoch);
	return UNSTARTED_RETURNED;
}

bool
unstarted_wait(struct dispatch *d, const struct queue_wait *wait)
{
	return is_settled(d, queue_wait(d->db, wait),
	    "let a deployment wait for its Git server");
}

bool
unstarted_end(struct dispatch *d, const struct queue_end *end)
{
	return is_settled(d, queue_end(d->db, end), "end a deployment");
}
