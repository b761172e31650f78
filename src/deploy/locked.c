/* SPDX-License-Identifier: ISC */
#include "deploy/locked.h"

#include "core/str.h"
#include "queue/move.h"
#include "store/lock.h"

static const struct err *
locked_error(struct arena *a, const struct deploy_lock *lock)
{
	char text[STR_TIME_SIZE];
	const char *end = "removed";

	if (lock->until.ms != 0) {
		str_time(text, lock->until.ms);
		end = arena_printf(a, "removed or expires at %s", text);
	}
	str_time(text, lock->since.ms);
	return err_public(ERR_LOCKED,
	    "The %s was locked by %s at %s: %s. Wait until the lock is %s.",
	    lock_scope(lock), str_clip(a, lock->by, 100), text,
	    str_clip(a, lock->reason, 240), end);
}

const struct err *
locked_check(struct deploy *deploy, int64_t project_id, int64_t environment_id)
{
	struct deploy_lock lock;
	const struct err *e;

	e = lock_over(deploy->db, deploy->a, project_id, environment_id, &lock);
	if (e != NULL)
		return e->code == ERR_NOTFOUND ? NULL : e;
	return locked_error(deploy->a, &lock);
}

const struct err *
locked_wait(struct deploy *deploy, const struct deployment *d,
    const char *before)
{
	const struct err *e;

	e = locked_check(deploy, d->project_id, d->environment_id.n);
	if (e == NULL || e->code != ERR_LOCKED)
		return e;
	return move_cancel_replaced(deploy->db, deploy->a, d->id, before);
}
