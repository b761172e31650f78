/* SPDX-License-Identifier: ISC */
#include <string.h>

#include "core/arena.h"
#include "core/buf.h"
#include "core/num.h"
#include "core/tree.h"
#include "store/member.h"
#include "store/pipeline.h"
#include "store/store.h"

static const char *const run_when[] = { "success", "failure", "always", NULL };

/* A step by itself and a step inside its pipeline differ in what a client may
 * send: inside, the order of the array determines the positions. */
#define S(m, ...) FIELD(struct step, m, __VA_ARGS__)
#define STEP_FIELDS(pipeline, place)                                           \
	S(id, FIELD_OUT, .doc = "Id of the step."), pipeline,                  \
	    S(name, FIELD_OUT | FIELD_IN | FIELD_MUST | FIELD_LINE, .min = 1,  \
		.max = 100, .doc = "Name of the step."),                       \
	    S(script, FIELD_OUT | FIELD_IN | FIELD_MUST, .min = 1,             \
		.max = STEP_SCRIPT_MAX,                                        \
		.doc =                                                         \
		    "Script for bash -eo pipefail, or for its own #! line; "   \
		    "at most 65535 bytes."),                                   \
	    S(directory, FIELD_OUT | FIELD_IN | FIELD_NULL | FIELD_LINE,       \
		.min = 1, .max = STEP_DIRECTORY_MAX,                           \
		.shown = STEP_DIRECTORY_PATTERN,                               \
		.doc = "Directory of the workspace that the step runs in; "    \
		       "null = its root."),                                    \
	    place,                                                             \
	    S(timeout_seconds, FIELD_OUT | FIELD_IN | FIELD_NULL, .min = 1,    \
		.max = PIPELINE_TIMEOUT_MAX,                                   \
		.doc = "Time limit of the step; null = the runner's limit."),  \
	    S(run_when, FIELD_OUT | FIELD_IN, .values = run_when,              \
		.named = "RunWhen",                                            \
		.doc = "Condition: no earlier step failed (success, the "      \
		       "default), one failed (failure), or always."),          \
	    S(may_fail, FIELD_OUT | FIELD_IN,                                  \
		.doc = "Whether the deployment succeeds, with a warning, "     \
		       "although this step failed."),                          \
	    S(valid, FIELD_OUT | FIELD_NUMBER, .doc = "1; 0 if deleted."),     \
	    S(created_at, FIELD_OUT, .doc = "Time of creation."),              \
	    S(updated_at, FIELD_OUT, .doc = "Time of the last change.")

static const struct field step_fields[] = {
	STEP_FIELDS(S(pipeline_id,
			FIELD_OUT | FIELD_IN | FIELD_MUST | FIELD_ONCE,
			.min = 1, .doc = "Pipeline of the step."),
	    S(position, FIELD_OUT | FIELD_IN,
		.doc = "Position in the pipeline, from 0; the default is the "
		       "end. A change moves the other steps.")),
	FIELD_END,
};
static const struct field inner_fields[] = {
	STEP_FIELDS(S(pipeline_id, FIELD_OUT, .doc = "Pipeline of the step."),
	    S(position, FIELD_OUT, .doc = "Position in the pipeline, from 0.")),
	FIELD_END,
};

const char *
step_directory_fault(const char *directory)
{
	if (tree_is_below(directory))
		return NULL;
	return "must be a path below the workspace such as web/app, without "
	       "empty, . and .. components";
}

static void
step_check(const void *item, const char *pointer, struct faults *faults)
{
	const struct step *s = item;
	const char *fault;

	if (s->directory != NULL &&
	    (fault = step_directory_fault(s->directory)) != NULL)
		faults_add(faults, fault_pointer(faults, pointer, "directory"),
		    "%s", fault);
	if (s->script != NULL && strlen(s->script) > STEP_SCRIPT_MAX)
		faults_add(faults, fault_pointer(faults, pointer, "script"),
		    "must have at most %d bytes", STEP_SCRIPT_MAX);
}

const struct shape step_shape = {
	.name = "Step",
	.fields = step_fields,
	.size = sizeof(struct step),
	.check = step_check,
	.doc = "A shell script of a pipeline.",
};

const struct shape inner_step_shape = {
	.name = "PipelineStep",
	.fields = inner_fields,
	.size = sizeof(struct step),
	.check = step_check,
	.doc = "A step inside its pipeline.",
};

struct step_query {
	int64_t pipeline_id;
	int64_t member;
	int64_t limit;
	int64_t offset;
	const char *ids; /* "[1,2]" */
};
struct step_sum {
	int64_t n;
	int64_t bytes;
};

/* Moving a step changes its version. Only those in [first, last] move. */
struct step_move {
	int64_t pipeline_id;
	int64_t first;
	int64_t last;
};
struct step_of {
	int64_t project_id;
};

#include "store/step.sql.h"

/* Deletes the steps of a deleted project. */
static const struct err *
delete_of_project(struct db *db, int64_t project_id)
{
	const struct step_of args = { .project_id = project_id };

	return db_exec(db, &sql_step_delete_of, &args, NULL);
}

const struct store step_store = {
	.stmts = step_stmts,
	.with_project = delete_of_project,
};

const struct err *
steps_of(struct db *db, struct arena *a, struct list *pipelines)
{
	struct pipeline *all = pipelines->items;
	struct step_query q = { .ids = NULL };
	const struct err *e;
	struct step *steps;
	struct list list;
	struct buf ids;
	size_t i, k;

	if (pipelines->n == 0)
		return NULL;
	buf_init(&ids, 4096);
	for (i = 0; i < pipelines->n; i++)
		buf_printf(&ids, "%c%lld", i == 0 ? '[' : ',',
		    (long long)all[i].id);
	buf_putc(&ids, ']');
	q.ids = ids.data;
	e = db_rows(db, a, &sql_step_of_pipelines, &q, &list);
	buf_release(&ids);
	if (e != NULL)
		return e;
	steps = list.items;
	for (i = 0; i < pipelines->n; i++)
		for (k = 0; k < list.n; k++)
			if (steps[k].pipeline_id == all[i].id) {
				if (all[i].steps.n++ == 0)
					all[i].steps.items = &steps[k];
			}
	return NULL;
}

const struct err *
step_page(struct db *db, struct arena *a, int64_t pipeline_id, struct page *p,
    struct list *out)
{
	const struct step_query q = { .pipeline_id = pipeline_id,
		.member = p->member,
		.limit = p->limit,
		.offset = page_offset(p) };

	if (pipeline_id != 0)
		return page_read(db, a, &sql_step_count_of, &sql_step_page_of,
		    &q, p, out);
	if (p->member != 0)
		return page_read(db, a, &sql_step_count_by, &sql_step_page_by,
		    &q, p, out);
	return page_read(db, a, &sql_step_count, &sql_step_page, &q, p, out);
}

const struct err *
step_by_id(struct db *db, struct arena *a, int64_t id, struct step *out)
{
	const struct step args = { .id = id };

	return db_row(db, a, &sql_step_by_id, &args, out);
}

const struct err *
step_append(struct db *db, const struct step *s, int64_t *id)
{
	struct step row = *s;
	const struct err *e;
	struct db_done done;

	*id = 0;
	if (row.run_when == NULL)
		row.run_when = run_when[0];
	if ((e = db_exec(db, &sql_step_insert, &row, &done)) != NULL)
		return e;
	*id = done.insert_id;
	return NULL;
}

/* A pipeline includes its steps, so a change of them changes its version. */
static const struct err *
pipeline_touch(struct db *db, int64_t pipeline_id)
{
	const struct step_query q = { .pipeline_id = pipeline_id };

	return db_exec(db, &sql_step_touch_pipeline, &q, NULL);
}

/* Number and size of the other steps. */
static const struct err *
others_sum(struct db *db, const struct step *s, struct step_sum *out)
{
	struct arena *a = arena_open(4096);
	const struct err *e;

	*out = (struct step_sum){ .n = 0 };
	e = db_row(db, a, &sql_step_sum_others, s, out);
	arena_close(a);
	return e;
}

const struct err *
step_judge(struct db *db, const struct step *s, struct faults *faults)
{
	const struct err *e;
	struct step_sum sum;

	if (s->pipeline_id == 0)
		return NULL;
	e = others_sum(db, s, &sum);
	if (e != NULL && e->code == ERR_NOTFOUND) {
		faults_add(faults, "/pipelineId", "unknown pipeline");
		return NULL;
	}
	if (e != NULL)
		return e;
	if (s->script != NULL &&
	    sum.bytes + (int64_t)strlen(s->script) > PIPELINE_BYTES_MAX)
		faults_add(faults, "/script",
		    "the scripts of a pipeline together must have at most 1 "
		    "MiB; move parts of them to the repository");
	if (sum.n >= PIPELINE_STEPS_MAX)
		faults_conflict(faults, "/pipelineId",
		    "the pipeline has %d steps already, which is the maximum",
		    PIPELINE_STEPS_MAX);
	return NULL;
}

/* Makes room for a moved step, or closes the gap that it leaves. `from` or `to`
 * is NUM_SAFE for a new or a deleted step. */
static const struct err *
make_way(struct db *db, const struct step *s, int64_t from, int64_t to)
{
	struct step_move move = { .pipeline_id = s->pipeline_id };

	if (from < to) {
		move.first = from + 1;
		move.last = to;
		return db_exec(db, &sql_step_move_down, &move, NULL);
	}
	move.first = to;
	move.last = from - 1;
	return from > to ? db_exec(db, &sql_step_move_up, &move, NULL) : NULL;
}

const struct err *
step_place(struct db *db, struct step *s)
{
	const struct err *e;
	struct step_sum sum;

	if ((e = others_sum(db, s, &sum)) != NULL)
		return e;
	if (!s->position.set || s->position.n > sum.n)
		s->position = (struct maybe){ .n = sum.n, .set = true };
	return NULL;
}

const struct err *
step_insert(struct db *db, const struct step *s, int64_t *id)
{
	struct step row = *s;
	const struct err *e;

	*id = 0;
	if ((e = step_place(db, &row)) != NULL)
		return e;
	if ((e = make_way(db, &row, NUM_SAFE, row.position.n)) != NULL)
		return e;
	if ((e = step_append(db, &row, id)) != NULL)
		return e;
	return pipeline_touch(db, s->pipeline_id);
}

const struct err *
step_update(struct db *db, const struct step *old, const struct step *s)
{
	const struct err *e;

	if ((e = make_way(db, s, old->position.n, s->position.n)) != NULL)
		return e;
	if ((e = db_exec(db, &sql_step_update, s, NULL)) != NULL)
		return e;
	return pipeline_touch(db, s->pipeline_id);
}

const struct err *
step_delete(struct db *db, const struct step *s)
{
	const struct err *e;

	if ((e = db_exec(db, &sql_step_delete, s, NULL)) != NULL)
		return e;
	if ((e = make_way(db, s, s->position.n, NUM_SAFE)) != NULL)
		return e;
	return pipeline_touch(db, s->pipeline_id);
}
