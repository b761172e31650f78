/* SPDX-License-Identifier: ISC */
/*
 * The stores.  A store is one value in its file: its statements, and what goes
 * with a project that is deleted.  A new one takes one line in the list below;
 * all that goes through the stores goes through this list.
 *
 * In names, "lock" reads a row FOR UPDATE, "hold" locks it so without reading
 * it, and "share" locks it IN SHARE MODE; each lasts until the transaction
 * ends.
 */
#ifndef SLIPWAY_STORE_STORE_H
#define SLIPWAY_STORE_STORE_H

#include "db/db.h"

/* clang-format off */
/* By name. That puts pipelines before their steps, which the deletion of a
 * project needs. */
#define STORES(X)							\
	X(deployment)							\
	X(deployment_make)						\
	X(figures)							\
	X(gitrepo)							\
	X(gitserver)							\
	X(gittoken)							\
	X(hook)								\
	X(idempotency)							\
	X(identity)							\
	X(joblog)							\
	X(lease)							\
	X(move)								\
	X(pipeline)							\
	X(project)							\
	X(projectdir)							\
	X(queue)							\
	X(report)							\
	X(sealed)							\
	X(session)							\
	X(step)								\
	X(token)							\
	X(user)								\
	X(waiting)
/* clang-format on */

struct store {
	const struct stmt *const *stmts; /* ends with a NULL */
	/* Deletes, or cancels, what belongs to the project; NULL = nothing
	 * does. */
	const struct err *(*with_project)(struct db *, int64_t project_id);
};

#define X(name) extern const struct store name##_store;
STORES(X)
#undef X

/* All of them; ends with a NULL. */
extern const struct store *const stores[];

/* ERR_CONFIG unless the schema is this program's and every statement of every
 * store fits it. */
MUSTCHECK const struct err *store_check(struct db *);
/* Deletes what goes with a project.  Each store comes before those below it: a
 * join holds only the rows that it changes, so another could add to the lower
 * one in between.  Inside a transaction that holds the project's row. */
MUSTCHECK const struct err *store_project_delete(struct db *,
    int64_t project_id);

#endif
