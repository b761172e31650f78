/* SPDX-License-Identifier: ISC */
/*
 * Secret values of a project: defaults of its presets, and variables of its
 * triggers. Each is sealed separately and stored beside the project, whose JSON
 * has null in their places; null in a request keeps the stored value. Nothing
 * here can open them: they are copied into deployments for the dispatcher.
 */
#ifndef SLIPWAY_DEPLOY_SECRETS_H
#define SLIPWAY_DEPLOY_SECRETS_H

#include "deploy/context.h"
#include "store/env.h"
#include "store/project.h"

#define SECRETS_MAX ((size_t)256 * 1024) /* bytes of either kind */
#define SECRETS_COUNT 2000               /* limits the time for sealing */

/* Secrets extracted from a project that is to be written. */
struct secrets {
	struct list defaults; /* struct secret */
	struct list hidden;   /* the same, of triggers */
	bool stored;          /* the project had some before */
};

/* Checks defaults and triggers against the presets, with stored values filled
 * in. Adds a fault for each null without a stored value, and for each stored
 * value whose preset has a new pattern. */
MUSTCHECK const struct err *secrets_judge(struct deploy *,
    const struct project *);
/* Extracts the secrets of a valid project, and removes them from its JSON, in
 * the arena. Adds a fault if they are too many or too
 * large. */
MUSTCHECK const struct err *secrets_take(struct deploy *, struct project *,
    struct secrets *out);
/* Stores the secrets; the project's row must be locked. ERR_CONFIG if
 * there is no key to seal them. */
MUSTCHECK const struct err *secrets_save(const struct deploy *,
    const struct secrets *, int64_t project_id);

/* Returns the variables (struct env_var) of the trigger at `index`, with its
 * stored secrets. */
MUSTCHECK const struct err *secrets_trigger(struct deploy *, int64_t project_id,
    const struct list *triggers, size_t index, struct list *out);

/* Identifies the trigger at `index` as long as its pattern, pipeline and
 * environment stay, in the arena. */
const char *secrets_trigger_key(struct arena *, const struct list *triggers,
    size_t index);

#endif
