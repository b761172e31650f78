/* SPDX-License-Identifier: ISC */
/* The description of a job: everything that it needs to know. */
#ifndef SLIPWAY_DISPATCH_DESCRIPTION_H
#define SLIPWAY_DISPATCH_DESCRIPTION_H

#include "dispatch/clone.h"
#include "queue/claim.h"

struct dispatch;

/* All but its last records.  ERR_CONFIG, with a sentence for the deployment, if
 * a secret cannot be decrypted. */
MUSTCHECK const struct err *description_write(const struct dispatch *,
    const struct claim *, struct buf *out);
/* Adds the last records. */
MUSTCHECK const struct err *description_end(struct buf *, const struct clone *);
/* Seconds after which the job must have ended by itself, cleanup included; 0 if
 * a step may take any time. */
int64_t description_limit(const struct settings_runner *, const struct claim *);

#endif
