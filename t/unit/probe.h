/* SPDX-License-Identifier: ISC */
/* What the probes share: how they print an error. */
#ifndef SLIPWAY_T_UNIT_PROBE_H
#define SLIPWAY_T_UNIT_PROBE_H

#include "core/err.h"

/* The word for the code of an error: that of the API, except that a fault of the
 * configuration is not called an outage. */
static inline const char *
probe_code(const struct err *e)
{
	return e->code == ERR_CONFIG ? "config" : err_kinds[e->code].name;
}

#endif
