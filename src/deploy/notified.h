/* SPDX-License-Identifier: ISC */
/* The rules of notifiers. */
#ifndef SLIPWAY_DEPLOY_NOTIFIED_H
#define SLIPWAY_DEPLOY_NOTIFIED_H

#include "deploy/context.h"
#include "store/notifier.h"

/* Adds faults: the target does not fit the kind, an event is listed twice, the
 * project or its environment is unknown. */
MUSTCHECK const struct err *notified_judge(struct deploy *,
    const struct notifier *);

#endif
