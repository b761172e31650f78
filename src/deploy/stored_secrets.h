/* SPDX-License-Identifier: ISC */
/* The stored secrets of a project, and how a value is sealed to become one.
 * Nothing here can open them; they are only copied. */
#ifndef SLIPWAY_DEPLOY_STORED_SECRETS_H
#define SLIPWAY_DEPLOY_STORED_SECRETS_H

#include "deploy/context.h"
#include "store/env.h"
#include "store/preset.h"

enum stored_kind { STORED_DEFAULTS, STORED_TRIGGERS, STORED__MAX };

/* Initialize the first three members; the rest is read into the arena when
 * needed. */
struct stored_secrets {
	struct deploy *deploy;
	struct arena *a;
	int64_t project_id; /* 0 = new, nothing is stored */
	bool read;
	struct map values[STORED__MAX]; /* each value sealed separately */
	bool presets_read;
	struct list presets; /* as stored */
};

/* The purpose for which a variable's value is sealed, in the arena. */
const char *stored_secrets_purpose(struct arena *, int64_t project_id,
    const char *name);
/* Reads what is stored. */
MUSTCHECK const struct err *stored_secrets_read(struct stored_secrets *);
/* Finds the value stored under the key, for the variable with that name; empty
 * if there is none. */
MUSTCHECK const struct err *stored_secrets_find(struct stored_secrets *,
    enum stored_kind, const char *key, const char *name, struct sealed *out);
/* Fills in the stored defaults of presets that are secret and have none. */
MUSTCHECK const struct err *stored_secrets_fill(struct stored_secrets *,
    struct list *presets);
/* Whether the stored value of a preset was checked against its current pattern.
 * If not, adds a fault, because the check is not possible here. */
MUSTCHECK const struct err *stored_secrets_check(struct stored_secrets *,
    const struct preset *, const char *pointer, bool *same);
/* Returns a variable's value for the dispatcher: the stored one, or else newly
 * sealed. ERR_CONFIG if there is no key to seal it. */
MUSTCHECK const struct err *stored_secrets_seal(const struct deploy *,
    int64_t project_id, const struct env_var *, const char **out);

#endif
