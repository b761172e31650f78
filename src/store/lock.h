/* SPDX-License-Identifier: ISC */
/* Locks of a project, an environment or the whole service: no new deployment
 * starts there. An expired lock counts as removed. */
#ifndef SLIPWAY_STORE_LOCK_H
#define SLIPWAY_STORE_LOCK_H

#include "db/db.h"
#include "store/audit.h"
#include "store/lock_row.h"

extern const struct shape lock_shape;

/* What it locks: "service", "project" or "environment". */
const char *lock_scope(const struct deploy_lock *);
/* The lock that a row was joined to, as a list: empty if it has none. */
struct list lock_joined(struct deploy_lock *);
/* What its entries in the audit log are about. */
struct audit_object_ref lock_object(const struct deploy_lock *);
/* Reads the lock of exactly this place; ERR_NOTFOUND if it has none. */
MUSTCHECK const struct err *lock_at(struct db *, struct arena *,
    int64_t project_id, int64_t environment_id, struct deploy_lock *out);
/* Reads the lock that keeps deployments from starting there: that of the
 * service, the project or the environment. ERR_NOTFOUND if there is none. */
MUSTCHECK const struct err *lock_over(struct db *, struct arena *,
    int64_t project_id, int64_t environment_id, struct deploy_lock *out);
/* Inside a transaction: waits for others that change the lock of the service. */
MUSTCHECK const struct err *lock_queue_up(struct db *);
/* Inside a transaction: sets the lock of a place, in place of the one that it
 * has. */
MUSTCHECK const struct err *lock_put(struct db *, const struct deploy_lock *);
/* ERR_NOTFOUND if the place has no lock. */
MUSTCHECK const struct err *lock_remove(struct db *, int64_t project_id,
    int64_t environment_id);
/* Deletes locks that have expired, a few per call, and records that the runner
 * did. Writes nothing if there are none. */
MUSTCHECK const struct err *lock_expire(struct db *, struct arena *,
    const char *runner);
#endif
