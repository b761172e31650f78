/* SPDX-License-Identifier: ISC */
/* Lists of envPresets. */
#ifndef SLIPWAY_DEPLOY_PRESETS_H
#define SLIPWAY_DEPLOY_PRESETS_H

#include "core/field.h"

/* Adds a fault for each key that appears twice among a project's presets. */
MUSTCHECK const struct err *presets_check(struct json_text, struct faults *);

/* Returns the presets of `own`, followed by those of `more` whose keys `own`
 * lacks, in the arena. `added` is the number of the latter; if it is 0, `out`
 * is
 * `own`. */
MUSTCHECK const struct err *presets_join(struct arena *, struct json_text own,
    struct json_text more, struct json_text *out, size_t *added);

#endif
