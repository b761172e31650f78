/* SPDX-License-Identifier: ISC */
/* Deployments of pushes. */
#ifndef SLIPWAY_STORE_PUSH_H
#define SLIPWAY_STORE_PUSH_H

#include "db/db.h"

/* Inside the transaction that inserts the deployment of a push: cancels older
 * pending ones of the same trigger that nobody approved. Of a branch, only those
 * for the same branch: if the deployment follows the branch all, else those of
 * the commit `before`, as the order in which events arrive proves nothing. */
MUSTCHECK const struct err *push_supersede(struct db *, struct arena *,
    int64_t deployment_id, const char *before);

#endif
