/* SPDX-License-Identifier: ISC */
/*
 * Variables that several projects share. A secret value is encrypted separately
 * for each project, because nothing here can decrypt it to pass it on later.
 */
#ifndef SLIPWAY_DEPLOY_SHARED_H
#define SLIPWAY_DEPLOY_SHARED_H

#include "deploy/context.h"
#include "store/env.h"
#include "store/variable.h"

/* Checks a variable that a request describes, and locks its projects inside a
 * transaction. Missing members are NULL. */
MUSTCHECK const struct err *shared_judge(struct deploy *,
    const struct variable *);
/* Stores a valid variable, new if its id is 0, and passes it to its projects.
 * ERR_CONFIG if it is secret and there is no key, ERR_INVALID if a project
 * would receive more than a deployment can. */
MUSTCHECK const struct err *shared_save(struct deploy *,
    const struct variable *, int64_t *id);
/* Lists the variables (struct env_var) that a project receives; the results are
 * in that arena. */
MUSTCHECK const struct err *shared_variables(struct deploy *, struct arena *,
    int64_t project_id, struct list *out);

#endif
