/* SPDX-License-Identifier: ISC */
/* The board: all projects with their environments, and their live, running and
 * waiting deployments. */
#ifndef SLIPWAY_QUEUE_BOARD_H
#define SLIPWAY_QUEUE_BOARD_H

#include "db/db.h"
#include "store/lock.h"
#include "store/page.h"

struct board_deployment {
	int64_t id;
	const char *status;
	const char *reason;
	const char *approval;
	const char *branch;
	const char *tag;
	const char *commit_hash;
	const char *commit_message; /* its first line */
	struct maybe environment_id;
	struct maybe created_by;
	struct when created_at;
	struct when started_at;
	struct when finished_at;
	int64_t warnings;
};

struct board_environment {
	int64_t id;
	int64_t project_id;
	const char *name;
	const char *url;
	int64_t live_id; /* a deployment; 0 = none */
	int64_t latest_id;
	int64_t waiting;
	int64_t approvals; /* of those that wait */
	struct deploy_lock lock_row;
	struct list lock;   /* at most one: lock_row */
	struct list live;   /* at most one struct board_deployment */
	struct list latest; /* the same */
};

struct board_project {
	int64_t id;
	const char *name;
	int64_t running_id; /* a deployment; 0 = none */
	int64_t live_id;
	int64_t latest_id;
	int64_t waiting;
	int64_t approvals;
	const char *role; /* of a member; NULL = none */
	struct deploy_lock lock_row;
	struct list lock; /* as above */
	struct list running;
	struct list live; /* only without environments */
	struct list latest;
	struct list environments; /* struct board_environment */
};

extern const struct shape board_shape;

/* Reads the page's struct board_project, ordered by name, with the same number
 * of statements whatever their number. */
MUSTCHECK const struct err *board_page(struct db *, struct arena *,
    struct page *, struct list *out);

#endif
