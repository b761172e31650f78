/* SPDX-License-Identifier: ISC */
/* What is stored of a project's secrets, sealed: nothing here can open it, it is
 * copied to where it is needed. */
#ifndef SLIPWAY_DEPLOY_VAULT_H
#define SLIPWAY_DEPLOY_VAULT_H

#include "deploy/context.h"
#include "store/preset.h"

enum vault_kind { VAULT_DEFAULTS, VAULT_TRIGGERS, VAULT__MAX };

/* Initialised with the first three; the rest is read when it is needed, into
 * the arena. */
struct vault {
	struct deploy *deploy;
	struct arena *a;
	int64_t project_id; /* 0 = a new one: nothing */
	bool read;
	struct map stored[VAULT__MAX]; /* each value sealed by itself */
	bool presets_read;
	struct list presets; /* as they are stored */
};

/* What a variable's value is bound to, in the arena. */
const char *vault_purpose(struct arena *, int64_t project_id, const char *name);
/* Fills in what is stored. */
MUSTCHECK const struct err *vault_read(struct vault *);
/* The value that is stored under the key for the variable of that name; none
 * if there is none. */
MUSTCHECK const struct err *vault_find(struct vault *, enum vault_kind,
    const char *key, const char *name, struct sealed *out);
/* Whether what is stored for a preset was held against the pattern that it has
 * now; adds a fault if not, as that cannot be done here. */
MUSTCHECK const struct err *vault_check(struct vault *, const struct preset *,
    const char *pointer, bool *same);

#endif
