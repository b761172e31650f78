/* SPDX-License-Identifier: ISC */
/* One message of a notifier that is being delivered, in a child process. */
#ifndef SLIPWAY_DISPATCH_COURIER_H
#define SLIPWAY_DISPATCH_COURIER_H

#include "dispatch/child.h"
#include "dispatch/sender.h"
#include "queue/notice.h"

struct courier {
	struct dispatch *d;
	struct access *access;
	struct arena *a; /* of the message */
	struct notice notice;
	bool is_gone; /* the receiver wants no more messages */
};

/* Whether the message has a receiver: the notifier may have been deleted or
 * deactivated, and the user may have no address any more. */
bool courier_has_receiver(const struct courier *);
/* Drops a message without a receiver. */
enum sent courier_drop(struct courier *);
/* Stores the result of an attempt: an error, or NULL = it was delivered. */
enum sent courier_done(struct courier *, const struct err *);

#endif
