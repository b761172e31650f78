/* SPDX-License-Identifier: ISC */
/* Numbers from text: strict decimal; the whole text must be a number in
 * range. */
#ifndef SLIPWAY_CORE_NUM_H
#define SLIPWAY_CORE_NUM_H

#include <stdbool.h>
#include <stdint.h>

/* Largest id or integer of the REST contract: 2^53-1. */
#define NUM_SAFE INT64_C(9007199254740991)

/* An optional '-', then digits; no blanks, no '+', no leading zeros. */
bool num_parse(const char *s, int64_t min, int64_t max, int64_t *out);
/* As above with an optional unit: k, m, g (powers of 1024). */
bool num_parse_size(const char *s, int64_t min, int64_t max, int64_t *out);

#endif
