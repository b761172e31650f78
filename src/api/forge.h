/* SPDX-License-Identifier: ISC */
/* Explains why the Git server is not available. */
#ifndef SLIPWAY_API_FORGE_H
#define SLIPWAY_API_FORGE_H

#include "web/req.h"

/* ERR_CONFIG: `what` requires the first n of GITSERVER_URL,
 * _CLIENT_ID and _REDIRECT_URI; names those that are not set. */
MUSTCHECK const struct err *gitserver_missing(const struct req *,
    const char *what, size_t n);

#endif
