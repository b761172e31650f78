/* SPDX-License-Identifier: ISC */
/* A lock, for the structs of other resources that have one. */
#ifndef SLIPWAY_STORE_LOCK_ROW_H
#define SLIPWAY_STORE_LOCK_ROW_H

#include "core/field.h"

struct deploy_lock {
	int64_t project_id;     /* 0 = the whole service */
	int64_t environment_id; /* 0 = the whole project */
	const char *reason;
	const char *by; /* name of the user who set it */
	struct maybe locked_by;
	struct when since;
	struct when until; /* none = until it is removed */
};

#endif
