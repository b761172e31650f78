/* SPDX-License-Identifier: ISC */
#include "store/pipeline.h"

#include "store/child.h"
#include "store/store.h"

const char *const pipeline_checkouts[] = { "fresh", "keep",
	PIPELINE_CHECKOUT_NONE, NULL };

#define P(m, ...) FIELD(struct pipeline, m, __VA_ARGS__)
static const struct field pipeline_fields[] = {
	P(id, FIELD_OUT, .doc = "Id of the pipeline."),
	P(project_id, FIELD_OUT | FIELD_IN | FIELD_MUST | FIELD_ONCE, .min = 1,
	    .doc = "Project of the pipeline."),
	P(name, FIELD_OUT | FIELD_IN | FIELD_MUST | FIELD_LINE, .min = 1,
	    .max = 100,
	    .doc = "Name, unique in its project; compared as for projects."),
	P(description, FIELD_OUT | FIELD_IN | FIELD_NULL | FIELD_TEXT,
	    .max = 500, .doc = "Description of the pipeline."),
	P(timeout_seconds, FIELD_OUT | FIELD_IN | FIELD_NULL, .min = 1,
	    .max = PIPELINE_TIMEOUT_MAX,
	    .doc = "Time limit of a run; null = the runner's limit."),
	P(checkout, FIELD_OUT | FIELD_IN, .values = pipeline_checkouts,
	    .named = "Checkout",
	    .doc = "Files that the first step finds: those of the commit and "
		   "no others (fresh, the default), files that git ignores "
		   "as well (keep), or none."),
	P(steps, FIELD_OUT | FIELD_IN | FIELD_ONCE, .max = PIPELINE_STEPS_MAX,
	    .shape = &inner_step_shape,
	    .doc = "Steps in order; use /api/steps to change them."),
	P(valid, FIELD_OUT | FIELD_NUMBER, .doc = "1; 0 if deleted."),
	P(created_at, FIELD_OUT, .doc = "Time of creation."),
	P(updated_at, FIELD_OUT, .doc = "Time of the last change."),
	P(created_by, FIELD_OUT | FIELD_NULL, .doc = "User who created it."),
	FIELD_END,
};

const struct shape pipeline_shape = {
	.name = "Pipeline",
	.fields = pipeline_fields,
	.size = sizeof(struct pipeline),
	.doc = "An ordered list of steps that deploys a project.",
};

#include "store/pipeline.sql.h"

static const struct child child = CHILD(pipeline);

/* Deletes the pipelines of a deleted project. */
static const struct err *
delete_of_project(struct db *db, int64_t project_id)
{
	return child_delete(db, &sql_pipeline_delete_of, project_id);
}

const struct store pipeline_store = {
	.stmts = pipeline_stmts,
	.with_project = delete_of_project,
};

const struct err *
pipeline_page(struct db *db, struct arena *a, int64_t project_id,
    struct page *p, struct list *out)
{
	const struct err *e;

	e = child_read(db, a, &child, project_id, p, out);
	return e != NULL ? e : steps_of(db, a, out);
}

/* Reads a pipeline with its steps. */
static const struct err *
row_with_steps(struct db *db, struct arena *a, const struct stmt *st,
    int64_t id, struct pipeline *out)
{
	const struct pipeline args = { .id = id };
	struct list one = { .items = out, .n = 1 };
	const struct err *e;

	if ((e = db_row(db, a, st, &args, out)) != NULL)
		return e;
	return steps_of(db, a, &one);
}

const struct err *
pipeline_by_id(struct db *db, struct arena *a, int64_t id, struct pipeline *out)
{
	return row_with_steps(db, a, &sql_pipeline_by_id, id, out);
}

const struct err *
pipeline_lock(struct db *db, struct arena *a, int64_t id, struct pipeline *out)
{
	return row_with_steps(db, a, &sql_pipeline_lock, id, out);
}

const struct err *
pipeline_hold(struct db *db, struct arena *a, int64_t id, int64_t *project_id)
{
	const struct pipeline args = { .id = id };
	struct pipeline found;
	const struct err *e;

	e = db_row(db, a, &sql_pipeline_hold, &args, &found);
	*project_id = found.project_id;
	return e;
}

const struct err *
pipeline_judge(struct db *db, const struct pipeline *p, struct faults *faults)
{
	return child_judge(db, &child, p->id, p->project_id, p->name, faults);
}

const struct err *
pipeline_insert(struct db *db, const struct pipeline *p, int64_t *id)
{
	const struct step *steps = p->steps.items;
	struct pipeline row = *p;
	const struct err *e;
	struct db_done done;
	struct step one;
	int64_t step_id;
	size_t i;

	*id = 0;
	if (row.checkout == NULL)
		row.checkout = pipeline_checkouts[0];
	if ((e = db_exec(db, &sql_pipeline_insert, &row, &done)) != NULL)
		return e;
	for (i = 0; i < p->steps.n; i++) {
		one = steps[i];
		one.pipeline_id = done.insert_id;
		one.position.n = (int64_t)i;
		one.position.set = true;
		if ((e = step_append(db, &one, &step_id)) != NULL)
			return e;
	}
	*id = done.insert_id;
	return NULL;
}

const struct err *
pipeline_update(struct db *db, const struct pipeline *p)
{
	return db_exec(db, &sql_pipeline_update, p, NULL);
}

const struct err *
pipeline_delete(struct db *db, int64_t id)
{
	const struct pipeline args = { .id = id };
	const struct err *e;

	if ((e = db_exec(db, &sql_pipeline_delete_steps, &args, NULL)) != NULL)
		return e;
	return child_delete(db, &sql_pipeline_delete_one, id);
}
