/* SPDX-License-Identifier: ISC */
/* Sends messages of notifiers that are no mails, in a child process. */
#ifndef SLIPWAY_DISPATCH_BAG_H
#define SLIPWAY_DISPATCH_BAG_H

#include <stdbool.h>

#include "dispatch/sender.h"

/* Sends all that are due, or, if `is_prompt`, a few at a time: those that stand
 * apart from the others. */
enum sent bag_send(struct dispatch *, bool is_prompt);

#endif
