/* SPDX-License-Identifier: ISC */
/* The limits of patterns (ere.h). */
#ifndef SLIPWAY_CORE_ERE_LIMITS_H
#define SLIPWAY_CORE_ERE_LIMITS_H

#define ERE_STATES_MAX 1000 /* a{1,500} needs 999 */
#define ERE_BYTES_MAX 2048  /* of a pattern */

#endif
