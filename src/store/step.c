/* SPDX-License-Identifier: ISC */
#include <string.h>

#include "core/arena.h"
#include "core/buf.h"
#include "core/num.h"
#include "core/tree.h"
#include "store/columns.h"
#include "store/member.h"
#include "store/pipeline.h"
#include "store/store.h"

#define A(m) FIELD(struct step, m, 0)

static const char *const run_when[] = { "success", "failure", "always", NULL };

/* A step by itself and a step inside its pipeline differ in what a client may
 * send: inside, the order of the array determines the positions. */
/* clang-format off */
#define STEP_COLUMNS(X, T, KIND)				\
	X(T, KEY, id, FIELD_OUT, .doc = "Id of the step.")		\
	X(T, ONCE, pipeline_id, KIND##_PIPELINE,			\
	    .doc = "Pipeline of the step.")				\
	X(T, SET, name, FIELD_OUT | FIELD_IN | FIELD_MUST | FIELD_LINE,	\
	    .min = 1, .max = 100, .doc = "Name of the step.")		\
	X(T, SET, script, FIELD_OUT | FIELD_IN | FIELD_MUST, .min = 1,	\
	    .max = STEP_SCRIPT_MAX,					\
	    .doc = "Script for bash -eo pipefail, or for its own #! line; " \
		   "at most 65535 bytes.")				\
	X(T, SET, directory,						\
	    FIELD_OUT | FIELD_IN | FIELD_NULL | FIELD_LINE, .min = 1,	\
	    .max = STEP_DIRECTORY_MAX, .shown = STEP_DIRECTORY_PATTERN,	\
	    .doc = "Directory of the workspace that the step runs in; "	\
		   "null = its root.")					\
	X(T, SET, position, KIND##_POSITION)				\
	X(T, SET, timeout_seconds, FIELD_OUT | FIELD_IN | FIELD_NULL,	\
	    .min = 1, .max = PIPELINE_TIMEOUT_MAX,			\
	    .doc = "Time limit of the step; null = the runner's limit.") \
	X(T, SET, run_when, FIELD_OUT | FIELD_IN, .values = run_when,	\
	    .named = "RunWhen",						\
	    .doc = "Condition: no earlier step failed (success, the "	\
		   "default), one failed (failure), or always.")	\
	X(T, SET, may_fail, FIELD_OUT | FIELD_IN,			\
	    .doc = "Whether the deployment succeeds, with a warning, "	\
		   "although this step failed.")			\
	X(T, READ, valid, FIELD_OUT | FIELD_NUMBER,			\
	    .doc = "1; 0 if deleted.")					\
	X(T, READ, created_at, FIELD_OUT, .doc = "Time of creation.")	\
	X(T, READ, updated_at, FIELD_OUT, .doc = "Time of the last change.") \
	X(T, READ, version, 0, .doc = "Number of changes.")
#define STEP_PIPELINE							\
	FIELD_OUT | FIELD_IN | FIELD_MUST | FIELD_ONCE, .min = 1
#define STEP_POSITION							\
	FIELD_OUT | FIELD_IN,						\
	    .doc = "Position in the pipeline, from 0; the default is the " \
		   "end. A change moves the other steps."
#define INNER_PIPELINE FIELD_OUT
#define INNER_POSITION FIELD_OUT, .doc = "Position in the pipeline, from 0."
#define STEP(X, T) STEP_COLUMNS(X, T, STEP)
#define INNER(X, T) STEP_COLUMNS(X, T, INNER)

static const struct field step_fields[] = {
	COLUMNS_FIELDS(STEP, struct step)
};
static const struct field inner_fields[] = {
	COLUMNS_FIELDS(INNER, struct step)
};
/* clang-format on */

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

#define COLUMNS COLUMNS_SELECT(STEP)

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
#define Q(m) FIELD(struct step_query, m, 0, .doc = NULL)

static const struct field id_args[] = { A(id), FIELD_END };
static const struct field page_args[] = { Q(limit), Q(offset), FIELD_END };
static const struct field by_args[] = { Q(member), Q(limit), Q(offset),
	FIELD_END };
static const struct field member_args[] = { Q(member), FIELD_END };
static const struct field of_args[] = { Q(pipeline_id), Q(limit), Q(offset),
	FIELD_END };
static const struct field pipeline_args[] = { Q(pipeline_id), FIELD_END };
static const struct field ids_args[] = { Q(ids), FIELD_END };

static const struct stmt by_id = {
	.name = "step_by_id",
	.sql = "SELECT " COLUMNS " FROM step WHERE id = ? AND valid = 1",
	.args = id_args,
	.row = step_fields,
	.rowsize = sizeof(struct step),
};
static const struct stmt page = {
	.name = "step_page",
	.sql = "SELECT " COLUMNS " FROM step WHERE valid = 1"
	       " ORDER BY pipeline_id, position, id LIMIT ? OFFSET ?",
	.args = page_args,
	.row = step_fields,
	.rowsize = sizeof(struct step),
};
#define BY                                                                     \
	" AND pipeline_id IN (SELECT l.id FROM pipeline l"                     \
	" WHERE l.project_id IN " MEMBER_PROJECTS ")"
static const struct stmt page_by = {
	.name = "step_page_by",
	.sql = "SELECT " COLUMNS " FROM step WHERE valid = 1" BY
	       " ORDER BY pipeline_id, position, id LIMIT ? OFFSET ?",
	.args = by_args,
	.row = step_fields,
	.rowsize = sizeof(struct step),
};
static const struct stmt page_of = {
	.name = "step_page_of",
	.sql = "SELECT " COLUMNS " FROM step WHERE pipeline_id = ?"
	       " AND valid = 1 ORDER BY position, id LIMIT ? OFFSET ?",
	.args = of_args,
	.row = step_fields,
	.rowsize = sizeof(struct step),
};
static const struct stmt of_pipelines = {
	.name = "step_of_pipelines",
	.sql = "SELECT " COLUMNS " FROM JSON_TABLE(?, '$[*]'"
	       " COLUMNS (wanted BIGINT PATH '$')) t STRAIGHT_JOIN step"
	       " FORCE INDEX (step_list)"
	       " ON pipeline_id = wanted AND valid = 1"
	       " ORDER BY pipeline_id, position, id",
	.args = ids_args,
	.row = step_fields,
	.rowsize = sizeof(struct step),
};
static const struct stmt count = {
	.name = "step_count",
	.sql = "SELECT COUNT(*) AS n FROM step WHERE valid = 1",
	.row = page_count_row,
	.rowsize = sizeof(struct page_count),
};
static const struct stmt count_by = {
	.name = "step_count_by",
	.sql = "SELECT COUNT(*) AS n FROM step WHERE valid = 1" BY,
	.args = member_args,
	.row = page_count_row,
	.rowsize = sizeof(struct page_count),
};
static const struct stmt count_of = {
	.name = "step_count_of",
	.sql = "SELECT COUNT(*) AS n FROM step WHERE pipeline_id = ?"
	       " AND valid = 1",
	.args = pipeline_args,
	.row = page_count_row,
	.rowsize = sizeof(struct page_count),
};

/* Size of the other scripts: a pipeline must fit into one response. No row if
 * the pipeline does not exist. */
static const struct field sum_args[] = { A(id), A(pipeline_id), FIELD_END };
static const struct field sum_row[] = {
	FIELD(struct step_sum, n, 0, .doc = NULL),
	FIELD(struct step_sum, bytes, 0, .doc = NULL),
	FIELD_END,
};
static const struct stmt sum_others = {
	.name = "step_sum_others",
	.sql = "SELECT COUNT(s.id) AS n,"
	       " CAST(COALESCE(SUM(OCTET_LENGTH(s.script)), 0) AS INT)"
	       " AS bytes FROM pipeline p LEFT JOIN step s"
	       " ON s.pipeline_id = p.id AND s.valid = 1 AND s.id <> ?"
	       " WHERE p.id = ? AND p.valid = 1 GROUP BY p.id",
	.args = sum_args,
	.row = sum_row,
	.rowsize = sizeof(struct step_sum),
};

/* clang-format off */
static const struct field insert_args[] = {
	COLUMNS_INSERT_ARGS(STEP, struct step)
};
/* clang-format on */
static const struct stmt insert = {
	.name = "step_insert",
	.sql = COLUMNS_INSERT("step", STEP),
	.args = insert_args,
};
/* clang-format off */
static const struct field update_args[] = {
	COLUMNS_UPDATE_ARGS(STEP, struct step)
};
/* clang-format on */
static const struct stmt update = {
	.name = "step_update",
	.sql = COLUMNS_UPDATE("step", STEP),
	.args = update_args,
};
static const struct stmt delete_step = {
	.name = "step_delete",
	.sql = "UPDATE step FORCE INDEX (PRIMARY)"
	       " SET valid = 0, version = version + 1,"
	       " updated_at = CURRENT_TIMESTAMP(3) WHERE id = ? AND valid = 1",
	.args = id_args,
};

/* Moving a step changes its version. Only those in [first, last] move. */
struct step_move {
	int64_t pipeline_id;
	int64_t first;
	int64_t last;
};
#define M(m) FIELD(struct step_move, m, 0, .doc = NULL)
#define MOVED                                                                  \
	" version = version + 1, updated_at = CURRENT_TIMESTAMP(3)"            \
	" WHERE pipeline_id = ? AND valid = 1 AND position BETWEEN ? AND ?"
static const struct field move_args[] = { M(pipeline_id), M(first), M(last),
	FIELD_END };
static const struct stmt move_up = {
	.name = "step_move_up",
	.sql = "UPDATE step SET position = position + 1," MOVED,
	.args = move_args,
};
static const struct stmt move_down = {
	.name = "step_move_down",
	.sql = "UPDATE step SET position = position - 1," MOVED,
	.args = move_args,
};
static const struct stmt touch = {
	.name = "step_touch_pipeline",
	.sql = "UPDATE pipeline SET version = version + 1,"
	       " updated_at = CURRENT_TIMESTAMP(3) WHERE id = ?",
	.args = pipeline_args,
};

struct step_of {
	int64_t project_id;
};
static const struct field of_project_args[] = {
	FIELD(struct step_of, project_id, 0),
	FIELD_END,
};
static const struct stmt delete_of = {
	.name = "step_delete_of",
	.sql = "UPDATE step s JOIN pipeline p ON p.id = s.pipeline_id"
	       " SET s.valid = 0, s.version = s.version + 1,"
	       " s.updated_at = CURRENT_TIMESTAMP(3)"
	       " WHERE p.project_id = ? AND s.valid = 1",
	.args = of_project_args,
};

static const struct stmt *const step_stmts[] = {
	&by_id,
	&page,
	&page_by,
	&page_of,
	&of_pipelines,
	&count,
	&count_by,
	&count_of,
	&sum_others,
	&insert,
	&update,
	&delete_step,
	&move_up,
	&move_down,
	&touch,
	&delete_of,
	NULL,
};

/* Deletes the steps of a deleted project. */
static const struct err *
delete_of_project(struct db *db, int64_t project_id)
{
	const struct step_of args = { .project_id = project_id };

	return db_exec(db, &delete_of, &args, NULL);
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
	e = db_rows(db, a, &of_pipelines, &q, &list);
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
		return page_read(db, a, &count_of, &page_of, &q, p, out);
	if (p->member != 0)
		return page_read(db, a, &count_by, &page_by, &q, p, out);
	return page_read(db, a, &count, &page, &q, p, out);
}

const struct err *
step_by_id(struct db *db, struct arena *a, int64_t id, struct step *out)
{
	const struct step args = { .id = id };

	return db_row(db, a, &by_id, &args, out);
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
	if ((e = db_exec(db, &insert, &row, &done)) != NULL)
		return e;
	*id = done.insert_id;
	return NULL;
}

/* A pipeline includes its steps, so a change of them changes its version. */
static const struct err *
touched(struct db *db, int64_t pipeline_id)
{
	const struct step_query q = { .pipeline_id = pipeline_id };

	return db_exec(db, &touch, &q, NULL);
}

/* Number and size of the other steps. */
static const struct err *
others(struct db *db, const struct step *s, struct step_sum *out)
{
	struct arena *a = arena_open(4096);
	const struct err *e;

	*out = (struct step_sum){ .n = 0 };
	e = db_row(db, a, &sum_others, s, out);
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
	e = others(db, s, &sum);
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
		return db_exec(db, &move_down, &move, NULL);
	}
	move.first = to;
	move.last = from - 1;
	return from > to ? db_exec(db, &move_up, &move, NULL) : NULL;
}

const struct err *
step_place(struct db *db, struct step *s)
{
	const struct err *e;
	struct step_sum sum;

	if ((e = others(db, s, &sum)) != NULL)
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
	return touched(db, s->pipeline_id);
}

const struct err *
step_update(struct db *db, const struct step *old, const struct step *s)
{
	const struct err *e;

	if ((e = make_way(db, s, old->position.n, s->position.n)) != NULL)
		return e;
	if ((e = db_exec(db, &update, s, NULL)) != NULL)
		return e;
	return touched(db, s->pipeline_id);
}

const struct err *
step_delete(struct db *db, const struct step *s)
{
	const struct err *e;

	if ((e = db_exec(db, &delete_step, s, NULL)) != NULL)
		return e;
	if ((e = make_way(db, s, s->position.n, NUM_SAFE)) != NULL)
		return e;
	return touched(db, s->pipeline_id);
}
