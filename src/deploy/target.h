/* SPDX-License-Identifier: ISC */
/*
 * The target of a deployment: an environment of the project, if it has any. A
 * project with one environment deploys to it by default; with several, each
 * deployment names one.
 */
#ifndef SLIPWAY_DEPLOY_TARGET_H
#define SLIPWAY_DEPLOY_TARGET_H

#include "deploy/context.h"
#include "queue/deployment.h"
#include "store/env.h"
#include "store/environment.h"

#define TARGET_TOTAL_MAX ((size_t)128 * 1024) /* variables of one */

/* What is wrong with a pattern of branches or tags, in the arena; NULL = it is
 * valid. */
const char *target_pattern_fault(struct arena *, const char *pattern);
/* Whether the environment accepts the tag of the deployment, else its branch;
 * neither = a branch that is not known yet. */
MUSTCHECK const struct err *target_accepts(struct arena *,
    const struct environment *, const struct deployment *, bool *out);
/* Whether no checkout would compare the deployment's commit with its branch or
 * tag, though the environment accepts only certain ones. A request can name any
 * commit; the server of a push does not. */
bool target_is_unchecked(const struct environment *, const struct deployment *);
/* Finds the environment; id 0 in `out` = the project has none. Adds a fault at
 * /environmentId if it is missing or unknown. */
MUSTCHECK const struct err *target_find(struct deploy *, int64_t project_id,
    struct maybe environment_id, struct environment *out);
/* The same, and adds a fault at /branch or /tag if it does not accept what the
 * deployment names. */
MUSTCHECK const struct err *target_choose(struct deploy *,
    const struct deployment *, struct maybe environment_id,
    struct environment *out);
/* Lists the variables (struct env_var) that a deployment to the environment
 * gets unless it sets them itself: those of the environment, then those that
 * the project shares with others; id 0 = without an environment. The results
 * are in the arena, not in the context's. */
MUSTCHECK const struct err *target_variables(struct deploy *, struct arena *,
    int64_t project_id, const struct environment *, struct list *out);

/* Checks an environment that a request describes: its patterns and
 * variables. Missing members are NULL. */
MUSTCHECK const struct err *target_judge(struct deploy *,
    const struct environment *);
/* Extracts the secret values of a valid environment, encrypted, and removes
 * them from its JSON; both are in the context's arena. ERR_CONFIG if there
 * is no key. */
MUSTCHECK const struct err *target_seal(struct deploy *, struct environment *,
    struct environment_secrets *out);

#endif
