/* SPDX-License-Identifier: ISC */
/* Schedules: deployments that start at certain times. The rules are in
 * src/deploy. */
#ifndef SLIPWAY_STORE_SCHEDULE_H
#define SLIPWAY_STORE_SCHEDULE_H

#include "core/fault.h"
#include "db/db.h"
#include "store/page.h"

#define SCHEDULE_ERROR_MAX 500 /* characters of last_error */

struct schedule {
	int64_t id;
	int64_t project_id;
	int64_t pipeline_id;
	struct maybe environment_id;
	const char *name;
	const char *cron;
	const char *timezone;
	const char *branch;
	struct map env_vars;        /* not in rows */
	struct json_text variables; /* the same as the row has it */
	bool active;
	struct when next_at; /* none = inactive */
	struct maybe last_deployment_id;
	int64_t failures;
	const char *last_error;
	bool valid;
	struct when created_at;
	struct when updated_at;
	struct maybe created_by;
	int64_t version;
	struct when now; /* the database's clock, when the row was read */
};

extern const struct shape schedule_shape;

/* Ordered by name; those of a project, or 0 = all. `env_vars` is not filled in,
 * here and below. */
MUSTCHECK const struct err *schedule_page(struct db *, struct arena *,
    int64_t project_id, struct page *, struct list *out);
/* ERR_NOTFOUND also if it was deleted. */
MUSTCHECK const struct err *schedule_by_id(struct db *, struct arena *,
    int64_t id, struct schedule *out);
/* The same, locked until the transaction ends. Lock the project before. */
MUSTCHECK const struct err *schedule_lock(struct db *, struct arena *,
    int64_t id, struct schedule *out);
/* Adds faults: the project is unknown, or another schedule of the project has
 * the name. */
MUSTCHECK const struct err *schedule_name_judge(struct db *,
    const struct schedule *, struct faults *);
MUSTCHECK const struct err *schedule_insert(struct db *,
    const struct schedule *, int64_t *id);
MUSTCHECK const struct err *schedule_update(struct db *,
    const struct schedule *);
MUSTCHECK const struct err *schedule_delete(struct db *, int64_t id);

/* Milliseconds until the next schedule is due, 0 or less if one is; not set =
 * there is none. */
MUSTCHECK const struct err *schedule_wait(struct db *, struct arena *,
    struct maybe *out);
/* The database's clock. */
MUSTCHECK const struct err *schedule_clock(struct db *, struct arena *,
    struct when *out);
#define SCHEDULE_CHECKED 100
/* Schedules that are active and not due, by id after that one, at most
 * SCHEDULE_CHECKED. */
MUSTCHECK const struct err *schedule_later(struct db *, struct arena *,
    int64_t after, struct list *out);
/* Finds a schedule that is due, the first by id after that one; ERR_NOTFOUND. */
MUSTCHECK const struct err *schedule_due(struct db *, struct arena *,
    int64_t after, struct schedule *out);
/* Inside a transaction: sets the time after the one that is due, unless the row
 * has changed since it was read. `taken` says whether this call did.  It also
 * corrects the time of one that is not due. */
MUSTCHECK const struct err *schedule_take(struct db *, const struct schedule *,
    struct when next, bool *taken);
/* Inside the same transaction: stores the deployment that was created. */
MUSTCHECK const struct err *schedule_fired(struct db *, int64_t id,
    int64_t deployment_id);
/* Inside the same transaction: stores the reason why there is none. */
MUSTCHECK const struct err *schedule_rejected(struct db *, int64_t id,
    const char *why);
/* Stores why this host cannot fire a schedule that is due, which stays due for
 * others, unless the row has changed since it was read. */
MUSTCHECK const struct err *schedule_unfired(struct db *,
    const struct schedule *, const char *why);

#endif
