/* SPDX-License-Identifier: ISC */
/* What a caller may hand out: a token never has a higher role and never lives
 * longer than the credential with which it is created. */
#ifndef SLIPWAY_API_GRANT_H
#define SLIPWAY_API_GRANT_H

#include "web/req.h"

/* Adds faults at /role and /expiresAt; NULL and 0 = not given. */
MUSTCHECK const struct err *grant_judge(struct req *, const char *role,
    struct when expires_at);
/* Sets missing values to the highest that the caller may grant. */
MUSTCHECK const struct err *grant_fill(struct req *, const char **role,
    struct when *expires_at);

#endif
