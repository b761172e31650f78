/* SPDX-License-Identifier: ISC */
/* Pipelines and their steps. */
#ifndef SLIPWAY_STORE_PIPELINE_H
#define SLIPWAY_STORE_PIPELINE_H

#include "db/db.h"
#include "store/page.h"

#define PIPELINE_STEPS_MAX 100
#define PIPELINE_TIMEOUT_MAX (INT64_C(30) * 24 * 3600) /* seconds */
#define PIPELINE_BYTES_MAX (INT64_C(1) << 20)          /* of its scripts */
#define STEP_SCRIPT_MAX 65535                          /* bytes */

struct step {
	int64_t id;
	int64_t pipeline_id;
	const char *name;
	const char *script;
	struct maybe position;
	struct maybe timeout_seconds;
	const char *run_when;
	bool valid;
	struct when created_at;
	struct when updated_at;
	int64_t version;
};

struct pipeline {
	int64_t id;
	int64_t project_id;
	const char *name;
	const char *description;
	struct maybe timeout_seconds;
	struct list steps; /* struct step, by position */
	bool valid;
	struct when created_at;
	struct when updated_at;
	struct maybe created_by;
	int64_t version;
};

extern const struct shape step_shape;       /* a step of its own */
extern const struct shape inner_step_shape; /* one inside a pipeline */
extern const struct shape pipeline_shape;

/* project_id 0 = of all projects; each with its steps. */
MUSTCHECK const struct err *pipeline_page(struct db *, struct arena *,
    int64_t project_id, struct page *, struct list *out);
MUSTCHECK const struct err *pipeline_by_id(struct db *, struct arena *,
    int64_t id, struct pipeline *out);
MUSTCHECK const struct err *pipeline_lock(struct db *, struct arena *,
    int64_t id, struct pipeline *out);
/* The lock alone, for changing its steps. */
MUSTCHECK const struct err *pipeline_hold(struct db *, struct arena *,
    int64_t id);
/* Adds what is wrong with it beside others: there is no such project; a
 * conflict, another pipeline of the project has its name.  What is 0 or NULL
 * is not judged. */
MUSTCHECK const struct err *pipeline_judge(struct db *, const struct pipeline *,
    struct faults *);
/* With its steps; inside a transaction. */
MUSTCHECK const struct err *pipeline_insert(struct db *,
    const struct pipeline *, int64_t *id);
MUSTCHECK const struct err *pipeline_update(struct db *,
    const struct pipeline *);
MUSTCHECK const struct err *pipeline_delete(struct db *, int64_t id);

/* pipeline_id 0 = of all pipelines. */
MUSTCHECK const struct err *step_page(struct db *, struct arena *,
    int64_t pipeline_id, struct page *, struct list *out);
MUSTCHECK const struct err *step_by_id(struct db *, struct arena *, int64_t id,
    struct step *out);
/* Fills in the steps of each of a list of pipelines. */
MUSTCHECK const struct err *steps_of(struct db *, struct arena *,
    struct list *pipelines);
/* Adds what is wrong with it beside others: there is no such pipeline, or the
 * scripts are too large together; a conflict, the pipeline is full. */
MUSTCHECK const struct err *step_judge(struct db *, const struct step *,
    struct faults *);
/* At the position that it has; for a pipeline in the making. */
MUSTCHECK const struct err *step_append(struct db *, const struct step *,
    int64_t *id);
/* Puts an unset position, or one past the end, at the end. */
MUSTCHECK const struct err *step_place(struct db *, struct step *);
/* These keep the positions of the pipeline without gaps; they run
 * inside a transaction that holds the pipeline's row. The first places the
 * step; the second expects a placed one. */
MUSTCHECK const struct err *step_insert(struct db *, const struct step *,
    int64_t *id);
MUSTCHECK const struct err *step_update(struct db *, const struct step *old,
    const struct step *);
MUSTCHECK const struct err *step_delete(struct db *, const struct step *);

#endif
