/* SPDX-License-Identifier: ISC */
/* Patterns of LIKE … ESCAPE '!'. */
#ifndef SLIPWAY_STORE_LIKE_H
#define SLIPWAY_STORE_LIKE_H

#include "core/arena.h"

/* A pattern that matches texts containing this one, with its wildcards taken
 * literally; NULL for NULL. */
const char *like_substring(struct arena *, const char *text);

#endif
