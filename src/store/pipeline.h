/* SPDX-License-Identifier: ISC */
/* Pipelines and their steps. */
#ifndef SLIPWAY_STORE_PIPELINE_H
#define SLIPWAY_STORE_PIPELINE_H

#include "db/db.h"
#include "store/page.h"

#define PIPELINE_STEPS_MAX 100
#define PIPELINE_TIMEOUT_MAX (INT64_C(30) * 24 * 3600) /* seconds */
#define PIPELINE_BYTES_MAX                                                     \
	(INT64_C(1) << 20)    /* total size of the
						        * scripts */
#define STEP_SCRIPT_MAX 65535 /* bytes */
#define STEP_DIRECTORY_MAX 255
/* A path below a directory, as a JSON Schema pattern. */
#define STEP_DIRECTORY_PATTERN                                                 \
	"(?!\\.\\.?(?:/|$))[^/\\u0000-\\u001f\\u007f]+"                        \
	"(?:/(?!\\.\\.?(?:/|$))[^/\\u0000-\\u001f\\u007f]+)*"

struct step {
	int64_t id;
	int64_t pipeline_id;
	const char *name;
	const char *script;
	const char *directory; /* in the workspace; NULL = its root */
	struct maybe position;
	struct maybe timeout_seconds;
	const char *run_when;
	bool may_fail;
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
	const char *checkout; /* one of pipeline_checkouts */
	struct list steps;    /* struct step, by position */
	bool valid;
	struct when created_at;
	struct when updated_at;
	struct maybe created_by;
	int64_t version;
};

/* The default comes first; ends with NULL. */
extern const char *const pipeline_checkouts[];
#define PIPELINE_CHECKOUT_NONE "none"

/* Why a step cannot run in that directory of the workspace; NULL = it can. */
const char *step_directory_fault(const char *directory);

extern const struct shape step_shape;       /* a step by itself */
extern const struct shape inner_step_shape; /* a step inside a pipeline */
extern const struct shape pipeline_shape;

/* project_id 0 = all projects; the pipelines include their steps. */
MUSTCHECK const struct err *pipeline_page(struct db *, struct arena *,
    int64_t project_id, struct page *, struct list *out);
MUSTCHECK const struct err *pipeline_by_id(struct db *, struct arena *,
    int64_t id, struct pipeline *out);
MUSTCHECK const struct err *pipeline_lock(struct db *, struct arena *,
    int64_t id, struct pipeline *out);
/* Locks the row to change the steps, and reads only its project. */
MUSTCHECK const struct err *pipeline_hold(struct db *, struct arena *,
    int64_t id, int64_t *project_id);
/* Adds faults with regard to other records: the project does not exist; as a
 * conflict, another pipeline of the project has the name. Ignores members that
 * are 0 or NULL. */
MUSTCHECK const struct err *pipeline_judge(struct db *, const struct pipeline *,
    struct faults *);
/* Inserts the pipeline and its steps; inside a transaction. */
MUSTCHECK const struct err *pipeline_insert(struct db *,
    const struct pipeline *, int64_t *id);
MUSTCHECK const struct err *pipeline_update(struct db *,
    const struct pipeline *);
MUSTCHECK const struct err *pipeline_delete(struct db *, int64_t id);

/* pipeline_id 0 = all pipelines. */
MUSTCHECK const struct err *step_page(struct db *, struct arena *,
    int64_t pipeline_id, struct page *, struct list *out);
MUSTCHECK const struct err *step_by_id(struct db *, struct arena *, int64_t id,
    struct step *out);
/* Reads the steps of each pipeline in the list. */
MUSTCHECK const struct err *steps_of(struct db *, struct arena *,
    struct list *pipelines);
/* Adds faults with regard to other records: the pipeline does not exist, or its
 * scripts would be too large; as a conflict, the pipeline is
 * full. */
MUSTCHECK const struct err *step_judge(struct db *, const struct step *,
    struct faults *);
/* Inserts a step of a new pipeline at the position that it has. */
MUSTCHECK const struct err *step_append(struct db *, const struct step *,
    int64_t *id);
/* Sets an unset position, or one past the end, to the end. */
MUSTCHECK const struct err *step_place(struct db *, struct step *);
/* These keep the positions of the pipeline without gaps, inside a transaction
 * that has locked the pipeline's row. The first one places the step; the second
 * one expects a placed step. */
MUSTCHECK const struct err *step_insert(struct db *, const struct step *,
    int64_t *id);
MUSTCHECK const struct err *step_update(struct db *, const struct step *old,
    const struct step *);
MUSTCHECK const struct err *step_delete(struct db *, const struct step *);

#endif
