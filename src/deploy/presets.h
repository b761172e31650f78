/* SPDX-License-Identifier: ISC */
/* envPresets as a whole. */
#ifndef SLIPWAY_DEPLOY_PRESETS_H
#define SLIPWAY_DEPLOY_PRESETS_H

#include "core/field.h"

/* Adds what is wrong with the presets of a project to the faults: a key that
 * appears twice. */
MUSTCHECK const struct err *presets_check(struct json_text, struct faults *);

/* The presets of `own`, then those of `more` whose keys `own` lacks; in the
 * arena.  `added` counts the latter; with none, `out` is `own`. */
MUSTCHECK const struct err *presets_join(struct arena *, struct json_text own,
    struct json_text more, struct json_text *out, size_t *added);

#endif
