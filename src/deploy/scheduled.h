/* SPDX-License-Identifier: ISC */
/* The rules of schedules. Each fires a deployment with the checks that a
 * request passes. */
#ifndef SLIPWAY_DEPLOY_SCHEDULED_H
#define SLIPWAY_DEPLOY_SCHEDULED_H

#include "deploy/context.h"
#include "store/schedule.h"

/* Fills in the variables of a stored schedule, in the arena. */
MUSTCHECK const struct err *scheduled_open(struct arena *, struct schedule *);
/* Checks a schedule that a request describes, and adds faults. Missing members
 * are NULL. */
MUSTCHECK const struct err *scheduled_judge(struct deploy *,
    const struct schedule *);
/* Prepares a valid schedule for its row: the variables as text, and the time at
 * which it fires next, which stays if cron, time zone and activity are those of
 * `old`; NULL = a new one. */
MUSTCHECK const struct err *scheduled_close(struct deploy *, struct schedule *,
    const struct schedule *old);
/* Corrects the time of a schedule that is not due, if the database's clock was
 * ahead when it was set and has been set back since.  `next` is the right one, in
 * milliseconds; `out` says whether it was changed. */
MUSTCHECK const struct err *scheduled_correct(struct db *,
    const struct schedule *, int64_t *next, bool *out);
/* Fires a schedule that is due, once for all times that were missed: creates
 * its deployment, which supersedes the one before if that is still pending, or
 * records why it cannot. `runner` is the name of the caller. However many runners call it, only one does. Runs a
 * transaction. `out` is the deployment; 0 = none. If this host does not know
 * the time zone, the schedule stays due. */
MUSTCHECK const struct err *scheduled_fire(struct deploy *,
    const struct schedule *due, const char *runner, int64_t *out);

#endif
