/* SPDX-License-Identifier: ISC */
/* What is stored of a project's secrets, sealed: nothing here can open it, it is
 * copied to where it is needed. */
#ifndef SLIPWAY_DEPLOY_STORED_SECRETS_H
#define SLIPWAY_DEPLOY_STORED_SECRETS_H

#include "deploy/context.h"
#include "store/preset.h"

enum stored_kind { STORED_DEFAULTS, STORED_TRIGGERS, STORED__MAX };

/* Initialised with the first three; the rest is read when it is needed, into
 * the arena. */
struct stored_secrets {
	struct deploy *deploy;
	struct arena *a;
	int64_t project_id; /* 0 = a new one: nothing */
	bool read;
	struct map values[STORED__MAX]; /* each value sealed by itself */
	bool presets_read;
	struct list presets; /* as they are stored */
};

/* What a variable's value is bound to, in the arena. */
const char *stored_secrets_purpose(struct arena *, int64_t project_id,
    const char *name);
/* Fills in what is stored. */
MUSTCHECK const struct err *stored_secrets_read(struct stored_secrets *);
/* The value that is stored under the key for the variable of that name; none
 * if there is none. */
MUSTCHECK const struct err *stored_secrets_find(struct stored_secrets *,
    enum stored_kind, const char *key, const char *name, struct sealed *out);
/* Whether what is stored for a preset was held against the pattern that it has
 * now; adds a fault if not, as that cannot be done here. */
MUSTCHECK const struct err *stored_secrets_check(struct stored_secrets *,
    const struct preset *, const char *pointer, bool *same);

#endif
