/* SPDX-License-Identifier: ISC */
/* envPresets as a whole. */
#ifndef SLIPWAY_DEPLOY_PRESETS_H
#define SLIPWAY_DEPLOY_PRESETS_H

#include "core/field.h"

/* Adds what is wrong with the presets of a project to the faults: a key that
 * appears twice. */
MUSTCHECK const struct err *presets_check(struct json_text, struct faults *);

#endif
