/* SPDX-License-Identifier: ISC */
/* Shared by the two files of the mask. */
#ifndef SLIPWAY_JOB_MASK_INNER_H
#define SLIPWAY_JOB_MASK_INNER_H

#include <stdint.h>

#include "job/mask.h"

/* Text that may separate the characters of a needle. */
enum spread {
	SPREAD_NONE,
	SPREAD_LINES, /* line breaks with indentation: base64 */
	SPREAD_BYTES, /* these, and separators between pairs: hex */
	SPREAD__MAX,
};

/* Copies a text to be hidden. */
void mask_needle(struct mask *, enum spread, const char *text, size_t len);
/* Adds each encoded form of a value. */
void mask_forms(struct mask *, const char *value, size_t len);
/* Adds each form in which languages and web pages quote it. */
void mask_quotes(struct mask *, const char *value, size_t len);
/* The code point at `s` and its length; that of a byte if it is not UTF-8. */
size_t mask_character(const char *s, size_t len, uint32_t *out);

#endif
