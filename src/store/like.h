/* SPDX-License-Identifier: ISC */
/* Patterns of LIKE … ESCAPE '!'. */
#ifndef SLIPWAY_STORE_LIKE_H
#define SLIPWAY_STORE_LIKE_H

#include "core/arena.h"

/* Matches what contains the text, whose wildcards are literal; NULL for
 * NULL. */
const char *like_substring(struct arena *, const char *text);

#endif
