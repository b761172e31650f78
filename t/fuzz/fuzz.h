/* SPDX-License-Identifier: ISC */
/* The contract of every fuzz target: no input may break it. */
#ifndef SLIPWAY_T_FUZZ_H
#define SLIPWAY_T_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* A rule that must hold for every input. */
#define MUST(rule)                                                             \
	do {                                                                   \
		if (!(rule))                                                   \
			abort();                                               \
	} while (0)

#endif
