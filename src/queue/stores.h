/* SPDX-License-Identifier: ISC */
/* The stores of the queue, and the list of all stores. */
#ifndef SLIPWAY_QUEUE_STORES_H
#define SLIPWAY_QUEUE_STORES_H

#include "store/store.h"

/* clang-format off */
/* By name. */
#define QUEUE_STORES(X)							\
	X(approval)							\
	X(board)							\
	X(claim)							\
	X(deployment)							\
	X(deployment_list)						\
	X(deployment_make)						\
	X(joblog)							\
	X(loghole)							\
	X(logline)							\
	X(move)								\
	X(notice)							\
	X(notice_claim)							\
	X(push)								\
	X(queue)							\
	X(repeat)							\
	X(report)							\
	X(retention)							\
	X(returned)							\
	X(total)							\
	X(waiting)
/* clang-format on */

#define X(name) extern const struct store name##_store;
QUEUE_STORES(X)
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
