/* SPDX-License-Identifier: ISC */
/*
 * Secret values that a project keeps: defaults of its presets, and variables
 * of its triggers.  Each is sealed by itself beside the project, whose JSON has
 * null in their places; null that comes in keeps what is there.  Nothing here
 * can open them: they are copied into deployments as they are, for the
 * dispatcher.
 */
#ifndef SLIPWAY_DEPLOY_SECRETS_H
#define SLIPWAY_DEPLOY_SECRETS_H

#include "deploy/context.h"
#include "store/env.h"
#include "store/project.h"

#define SECRETS_MAX ((size_t)256 * 1024) /* bytes of either kind */
#define SECRETS_COUNT 2000               /* each takes some time to seal */

/* What is taken out of a project that is written. */
struct secrets {
	struct list defaults; /* struct secret */
	struct list hidden;   /* the same, of triggers */
	bool stored;          /* the project has had some */
};

/* Holds defaults and triggers against the presets, completed by what is
 * stored.  Adds a fault for each null that stands for nothing, and for a
 * stored value whose preset has another pattern by now. */
MUSTCHECK const struct err *secrets_judge(struct deploy *,
    const struct project *);
/* Of what was judged good: the secrets, and the project's JSON without them,
 * in the arena.  Adds a fault if they are too many or too large. */
MUSTCHECK const struct err *secrets_take(struct deploy *, struct project *,
    struct secrets *out);
/* Stores them, with the project's row held.  ERR_UNAVAILABLE if there is no
 * key to seal with. */
MUSTCHECK const struct err *secrets_save(const struct deploy *,
    const struct secrets *, int64_t project_id);

/* Fills in secret defaults of a project's presets, as they are stored. */
MUSTCHECK const struct err *secrets_presets(struct deploy *, int64_t project_id,
    struct list *presets);
/* Variables (struct env_var) of the trigger at `index`, with its secrets as
 * they are stored. */
MUSTCHECK const struct err *secrets_trigger(struct deploy *, int64_t project_id,
    const struct list *triggers, size_t index, struct list *out);

/* A variable's value for the dispatcher: what is stored, else sealed now.
 * ERR_UNAVAILABLE if there is no key to seal with. */
MUSTCHECK const struct err *secrets_seal(const struct deploy *,
    int64_t project_id, const struct env_var *, const char **out);

#endif
