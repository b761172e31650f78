/* SPDX-License-Identifier: ISC */
/* Signing in with a browser, on this or another machine (RFC 8628). */
#ifndef SLIPWAY_CLI_DEVICE_H
#define SLIPWAY_CLI_DEVICE_H

#include "cli/client.h"

enum device_flag {
	DEVICE_BROWSER = 1 << 0, /* open the page, too */
};

/* Shows a code on standard error and waits until a user has approved it; the
 * result is an API token.  ERR_FORBIDDEN if the user denies it,
 * ERR_UPSTREAM_TIMEOUT if the code expires. */
MUSTCHECK const struct err *device_sign_in(struct client *, unsigned flags,
    const char **token);

#endif
