/* SPDX-License-Identifier: ISC */
/*
 * The stores of what people edit. A store is one value in its file: its statements,
 * which are text in the .sql file beside it, and how to delete the rows of a
 * project. To add one, add a line to the list below; all users of the stores go
 * through queue/stores.h.
 *
 * In names, "lock" reads a row FOR UPDATE, "hold" locks it without reading it,
 * and "share" locks it IN SHARE MODE; each lasts until the transaction ends.
 */
#ifndef SLIPWAY_STORE_STORE_H
#define SLIPWAY_STORE_STORE_H

#include "db/db.h"

/* clang-format off */
/* By name. That puts pipelines before their steps, as the deletion of a project
 * requires. */
#define STORES(X)							\
	X(audit)							\
	X(badge)							\
	X(cache)							\
	X(capacity)							\
	X(change)							\
	X(dbserver)							\
	X(deploy_key)							\
	X(device)							\
	X(environment)							\
	X(fact)								\
	X(figures)							\
	X(gitaccount)							\
	X(gitrepo)							\
	X(gitserver)							\
	X(gittoken)							\
	X(hook)								\
	X(idempotency)							\
	X(identity)							\
	X(lease)							\
	X(lock)								\
	X(member)							\
	X(named)							\
	X(notifier)							\
	X(pipeline)							\
	X(project)							\
	X(projectdir)							\
	X(runner)							\
	X(schedule)							\
	X(sealed)							\
	X(sequence)							\
	X(session)							\
	X(step)								\
	X(submodule)							\
	X(token)							\
	X(user)								\
	X(variable)							\
	X(workspace)
/* clang-format on */

struct store {
	const struct stmt *const *stmts; /* ends with a NULL */
	/* Deletes or cancels what belongs to the project; NULL = the store has
	 * no such rows. */
	const struct err *(*with_project)(struct db *, int64_t project_id);
};

#define X(name) extern const struct store name##_store;
STORES(X)
#undef X

#endif
