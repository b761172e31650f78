/* SPDX-License-Identifier: ISC */
/* The labels of this runner. */
#ifndef SLIPWAY_DISPATCH_LABELS_H
#define SLIPWAY_DISPATCH_LABELS_H

#include "core/arena.h"

/* Converts the value of runner.labels, which may be NULL, to a JSON array of
 * strings in the arena. */
const char *labels_json(struct arena *, const char *labels);

#endif
