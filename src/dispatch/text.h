/* SPDX-License-Identifier: ISC */
/* Text from a job or a Git server, which may hold any bytes. */
#ifndef SLIPWAY_DISPATCH_TEXT_H
#define SLIPWAY_DISPATCH_TEXT_H

#include "core/arena.h"

/* Well-formed UTF-8 of at most `max` code points; '?' for each byte that is
 * not. */
const char *text_clean(struct arena *, const char *, size_t max);
/* The same, with a blank for each control character that is not in `kept`. */
const char *text_plain(struct arena *, const char *, size_t max,
    const char *kept);

#endif
