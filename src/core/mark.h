/* SPDX-License-Identifier: ISC */
/* Combining marks: characters that are drawn on the one before them. */
#ifndef SLIPWAY_CORE_MARK_H
#define SLIPWAY_CORE_MARK_H

#include <stdbool.h>
#include <stdint.h>

bool mark_is(uint32_t code);

#endif
