/* SPDX-License-Identifier: ISC */
#ifndef SLIPWAY_CORE_TIME_H
#define SLIPWAY_CORE_TIME_H

#include <stdint.h>

/* Milliseconds of the wall clock, and of a monotonic clock. */
int64_t time_now_ms(void);
int64_t time_mono_ms(void);

#endif
