/* SPDX-License-Identifier: ISC */
/* The context of the deployment rules, independent of the caller: the API, a
 * webhook, a schedule, a command line. */
#ifndef SLIPWAY_DEPLOY_CONTEXT_H
#define SLIPWAY_DEPLOY_CONTEXT_H

#include "core/fault.h"
#include "core/settings.h"

struct public_key;
struct db;

struct deploy {
	struct db *db;
	struct arena *a; /* for results; the caller closes it */
	const struct settings *settings;
	const struct public_key *public_key; /* seals variables; NULL = none */
	struct faults *faults;               /* errors in the input */
};

#endif
