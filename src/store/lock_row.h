/* SPDX-License-Identifier: ISC */
/* The rows of locks, for the statements of this folder that read them. */
#ifndef SLIPWAY_STORE_LOCK_ROW_H
#define SLIPWAY_STORE_LOCK_ROW_H

#include "core/field.h"

struct deploy_lock {
	int64_t project_id;     /* 0 = the whole service */
	int64_t environment_id; /* 0 = the whole project */
	const char *reason;
	const char *by; /* name of the user who set it */
	struct maybe locked_by;
	struct when since;
	struct when until; /* none = until it is removed */
};

/* SQL: a condition on the row `k` of deploy_lock. */
#define LOCK_ACTIVE "(k.`until` IS NULL OR k.`until` > NOW(3))"
/* SQL: the key of a place, of two expressions. */
#define LOCK_PLACE(project_id, environment_id)                                 \
	"CONCAT('project ', " project_id ", ' environment ', " environment_id  \
	")"
/* SQL: joins the lock of a place to a row, and selects it from there. */
#define LOCK_JOIN(project_id, environment_id)                                  \
	" LEFT JOIN deploy_lock k ON " LOCK_ACTIVE                             \
	" AND k.place = " LOCK_PLACE(project_id, environment_id)               \
	    LOCK_JOIN_USER
#define LOCK_JOIN_USER " LEFT JOIN user u ON u.id = k.locked_by"
#define LOCK_COLUMNS                                                           \
	"k.reason, COALESCE(u.username, 'a user') AS `by`, k.since, k.`until`"
/* These columns for COLUMNS_PART(). */
/* clang-format off */
#define LOCK_ROW(X, T)							\
	X(T, KEY, reason, 0)						\
	X(T, READ, by, 0)						\
	X(T, READ, since, 0)						\
	X(T, READ, until, 0)
/* clang-format on */
/* SQL: whether a lock keeps the deployment `d` from starting. */
#define LOCK_APPLIES                                                           \
	"EXISTS (SELECT 1 FROM deploy_lock k WHERE " LOCK_ACTIVE               \
	" AND (k.project_id IS NULL OR (k.project_id = d.project_id"           \
	" AND (k.environment_id IS NULL"                                       \
	" OR k.environment_id = d.environment_id))))"
/* SQL: selects project_id and id of the deployments that pass those which wait
 * for the lock of an environment. */
#define LOCK_PASSERS                                                           \
	"SELECT STRAIGHT_JOIN d.project_id, MIN(d.id) FROM deploy_lock g"      \
	" JOIN deployment d FORCE INDEX (deployment_turn)"                     \
	" ON d.project_id = g.project_id"                                      \
	" AND d.status = 'pending' AND d.turn = 1"                             \
	" WHERE g.environment_id IS NOT NULL AND NOT " LOCK_APPLIES            \
	" GROUP BY d.project_id"

#endif
