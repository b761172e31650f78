/* SPDX-License-Identifier: ISC */
/* What the rules of deploying work with, whatever program asks: the API, a
 * webhook, a schedule, a command line. */
#ifndef SLIPWAY_DEPLOY_CONTEXT_H
#define SLIPWAY_DEPLOY_CONTEXT_H

#include "core/fault.h"
#include "core/settings.h"

struct public_key;
struct db;

struct deploy {
	struct db *db;
	struct arena *a; /* results live here; the caller closes it */
	const struct settings *settings;
	const struct public_key
	    *public_key;       /* seals variables; NULL = there is no key */
	struct faults *faults; /* what is wrong with the input */
};

#endif
