/* SPDX-License-Identifier: ISC */
/*
 * The stores. A store is one value in its file: its statements, which are text in
 * the .sql file beside it, and how to delete the rows of a project. To add one,
 * add a line to the list below; all users of the stores go through this list.
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
	X(approval)							\
	X(audit)							\
	X(badge)							\
	X(board)							\
	X(cache)								\
	X(capacity)							\
	X(change)							\
	X(claim)							\
	X(dbserver)							\
	X(deploy_key)							\
	X(deployment)							\
	X(deployment_list)						\
	X(deployment_make)						\
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
	X(joblog)							\
	X(lease)							\
	X(lock)								\
	X(loghole)							\
	X(logline)							\
	X(member)							\
	X(move)								\
	X(named)							\
	X(notice)							\
	X(notice_claim)						\
	X(notifier)							\
	X(pipeline)							\
	X(project)							\
	X(projectdir)							\
	X(push)								\
	X(queue)							\
	X(repeat)							\
	X(report)							\
	X(retention)							\
	X(returned)							\
	X(runner)							\
	X(schedule)							\
	X(sealed)							\
	X(sequence)							\
	X(session)							\
	X(step)								\
	X(submodule)							\
	X(token)							\
	X(total)							\
	X(user)								\
	X(variable)							\
	X(waiting)							\
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

/* All stores; ends with a NULL. */
extern const struct store *const stores[];

/* ERR_CONFIG unless the schema has this program's version and every statement
 * of every store matches it. */
MUSTCHECK const struct err *store_check(struct db *);
/* Deletes what belongs to a project. Each store comes before those that refer
 * to its rows: a join locks only the rows that it changes, so another
 * transaction could otherwise insert into the lower table in between. Inside a
 * transaction that has locked the project's
 * row. */
MUSTCHECK const struct err *store_project_delete(struct db *,
    int64_t project_id);

#endif
