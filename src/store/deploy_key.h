/* SPDX-License-Identifier: ISC */
/* Deploy keys: the SSH key with which runners read a project's repository. */
#ifndef SLIPWAY_STORE_DEPLOY_KEY_H
#define SLIPWAY_STORE_DEPLOY_KEY_H

#include "db/db.h"

/* The purpose for which the private half is sealed: id of the project. */
#define DEPLOY_KEY_PURPOSE "deploy key of project %lld"

struct deploy_key {
	int64_t project_id;
	const char *public_key;
	const char *fingerprint;
	const char *sealed; /* the private half, for the dispatcher */
	struct maybe created_by;
	struct when created_at; /* also its version */
};

extern const struct shape deploy_key_shape;

/* ERR_NOTFOUND if the project has none, or is deleted. */
MUSTCHECK const struct err *deploy_key_find(struct db *, struct arena *,
    int64_t project_id, struct deploy_key *out);
/* Replaces the project's key. */
MUSTCHECK const struct err *deploy_key_put(struct db *,
    const struct deploy_key *);
MUSTCHECK const struct err *deploy_key_remove(struct db *, int64_t project_id);

#endif
