/* SPDX-License-Identifier: ISC */
/* Reports why a deployment waits that this runner could take. */
#ifndef SLIPWAY_DISPATCH_WAITING_H
#define SLIPWAY_DISPATCH_WAITING_H

#include <stdint.h>

struct dispatch;

#define WAITING_NOTED 128

/* The last notes.  A note that is repeated sooner than it expires is not
 * written again. */
struct waiting_notes {
	struct waiting_noted {
		int64_t id; /* 0 = unused */
		int64_t at;
	} last[WAITING_NOTED];
};

/* Call it again while the deployment waits. */
void waiting_note(struct dispatch *, int64_t id, const char *detail);

#endif
