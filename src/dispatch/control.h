/* SPDX-License-Identifier: ISC */
/* Operations on a task in any phase: renewing its lease, ending its job. */
#ifndef SLIPWAY_DISPATCH_CONTROL_H
#define SLIPWAY_DISPATCH_CONTROL_H

#include "dispatch/task.h"

struct dispatch;

/* The lease was taken or renewed now: sets when it is due again. */
void control_leased(const struct dispatch *, struct task *);
/* Renews the lease.  ERR_PRECONDITION: another dispatcher holds the task. */
MUSTCHECK const struct err *control_renew(const struct dispatch *,
    struct task *);
/* Asks the job to end; it is killed if it takes too long. */
void control_cancel(const struct dispatch *, struct task *);
/* Has the monitor kill the job. */
void control_kill(struct task *, const char *why);
/* Another dispatcher holds the task, so this one writes nothing more for it. */
void control_fence(struct task *);
/* Orders the monitor to end all processes of the job, and to report when none
 * is left. */
void control_sweep(const struct task *);

#endif
