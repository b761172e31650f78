/* SPDX-License-Identifier: ISC */
#ifndef SLIPWAY_CLI_APPROVAL_H
#define SLIPWAY_CLI_APPROVAL_H

#include "cli/deployment.h"

/* Says on standard error that the deployment waits for approval, by whom, and
 * how to approve it; prints nothing if it does not wait for that.  Users whom
 * the service does not name to the caller are left out. */
void approval_print(struct client *, const struct deployment *);
/* Fills in who approved or denied the deployment: a name, or the user's id if
 * the service does not name that user to the caller. */
void approval_name(struct client *, struct deployment *);

#endif
