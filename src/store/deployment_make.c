/* SPDX-License-Identifier: ISC */
/* Creates deployments, from a pipeline or from an earlier deployment. */
#include "store/deployment.h"
#include "store/move.h"
#include "store/store.h"

#define A(m) FIELD(struct deployment, m, 0)

/* Arguments and results of small queries. */
struct number {
	int64_t n;
	int64_t of;
};
#define N(m) FIELD(struct number, m, 0)
static const struct field n_row[] = { N(n), FIELD_END };
#define NUMBER_ROW .row = n_row, .rowsize = sizeof(struct number)
static const struct field of_args[] = { N(of), FIELD_END };
static const struct field of_n_args[] = { N(of), N(n), FIELD_END };
static const struct field n_of_args[] = { N(n), N(of), FIELD_END };

/* An exclusive lock. With a shared one, a deployment could be committed before
 * another of its project with a smaller id, and overtake it in the queue. */
static const struct stmt hold_project = {
	.name = "deployment_hold_project",
	.sql = "SELECT id AS n FROM project WHERE id = ? AND valid = 1"
	       " FOR UPDATE",
	.args = of_args,
	NUMBER_ROW,
};
static const struct stmt hold_project_of = {
	.name = "deployment_hold_project_of",
	.sql = "SELECT id AS n FROM project WHERE id ="
	       " (SELECT project_id FROM deployment WHERE id = ?)"
	       " AND valid = 1 FOR UPDATE",
	.args = of_args,
	NUMBER_ROW,
};
static const struct stmt share_pipeline = {
	.name = "deployment_share_pipeline",
	.sql = "SELECT id AS n FROM pipeline WHERE project_id = ? AND id = ?"
	       " AND valid = 1 LOCK IN SHARE MODE",
	.args = of_n_args,
	NUMBER_ROW,
};
static const struct stmt two_pipelines = {
	.name = "deployment_two_pipelines",
	.sql = "SELECT id AS n FROM pipeline WHERE project_id = ?"
	       " AND valid = 1 LIMIT 2 LOCK IN SHARE MODE",
	.args = of_args,
	NUMBER_ROW,
};

static const struct stmt steps_count = {
	.name = "deployment_steps_count",
	.sql = "SELECT COUNT(*) AS n FROM step WHERE pipeline_id = ?"
	       " AND valid = 1",
	.args = of_args,
	NUMBER_ROW,
};

/* The columns that a retry copies. */
#define MADE_OF                                                                \
	"project_id, timeout_seconds, branch, commit_hash, commit_message,"    \
	" env_vars, secret_vars, env_role, pipeline_id"
#define STEP_OF "position, name, script, timeout_seconds, run_when"

static const struct field insert_args[] = { A(branch), A(commit_hash),
	A(commit_message), A(env_vars), A(secret_vars), A(env_role), A(trigger),
	A(created_by), A(pipeline_id), A(project_id), FIELD_END };
static const struct stmt insert = {
	.name = "deployment_insert",
	.sql = "INSERT INTO deployment (" MADE_OF ", `trigger`, created_by)"
	       " SELECT project_id, timeout_seconds, ?, ?, ?, ?, ?, ?, id, ?, ?"
	       " FROM pipeline WHERE id = ? AND project_id = ? AND valid = 1",
	.args = insert_args,
};
static const struct stmt insert_steps = {
	.name = "deployment_insert_steps",
	.sql = "INSERT INTO deployment_step (deployment_id, " STEP_OF ")"
	       " SELECT ?, " STEP_OF " FROM step"
	       " WHERE pipeline_id = ? AND valid = 1",
	.args = n_of_args,
};
static const struct stmt repeat = {
	.name = "deployment_repeat",
	.sql = "INSERT INTO deployment (" MADE_OF ", `trigger`, retry_of,"
	       " created_by) SELECT " MADE_OF ", 'retry', id, ?"
	       " FROM deployment WHERE id = ?",
	.args = n_of_args,
};
static const struct stmt repeat_steps = {
	.name = "deployment_repeat_steps",
	.sql = "INSERT INTO deployment_step (deployment_id, " STEP_OF ")"
	       " SELECT ?, " STEP_OF " FROM deployment_step"
	       " WHERE deployment_id = ?",
	.args = n_of_args,
};

static const struct stmt *const deployment_make_stmts[] = {
	&hold_project,
	&hold_project_of,
	&share_pipeline,
	&two_pipelines,
	&steps_count,
	&insert,
	&insert_steps,
	&repeat,
	&repeat_steps,
	NULL,
};

const struct store deployment_make_store = {
	.stmts = deployment_make_stmts,
};

const struct err *
deployment_hold_project(struct db *db, struct arena *a, int64_t project_id)
{
	const struct number args = { .of = project_id };
	struct number found;

	return db_row(db, a, &hold_project, &args, &found);
}

const struct err *
deployment_hold_project_of(struct db *db, struct arena *a, int64_t id)
{
	const struct number args = { .of = id };
	struct number found;

	return db_row(db, a, &hold_project_of, &args, &found);
}

const struct err *
deployment_share_pipeline(struct db *db, struct arena *a, int64_t project_id,
    struct maybe pipeline_id, int64_t *out)
{
	const struct number args = { .of = project_id, .n = pipeline_id.n };
	const struct err *e;
	struct number found;
	struct list list;

	*out = pipeline_id.n;
	if (pipeline_id.set)
		return db_row(db, a, &share_pipeline, &args, &found);
	if ((e = db_rows(db, a, &two_pipelines, &args, &list)) != NULL)
		return e;
	if (list.n == 0)
		return err_new(ERR_NOTFOUND, "no pipeline");
	if (list.n > 1)
		return err_new(ERR_CONFLICT, "several pipelines");
	*out = ((const struct number *)list.items)->n;
	return NULL;
}

const struct err *
deployment_steps_count(struct db *db, struct arena *a, int64_t pipeline_id,
    int64_t *out)
{
	const struct number args = { .of = pipeline_id };
	struct number found = { .n = 0 };
	const struct err *e;

	e = db_row(db, a, &steps_count, &args, &found);
	*out = found.n;
	return e;
}

/* Inserts the steps of a new deployment and makes it pending. */
static const struct err *
steps_copy(struct db *db, const struct stmt *how, int64_t id, int64_t from)
{
	const struct number args = { .n = id, .of = from };
	const struct err *e;
	struct db_done done;

	if ((e = db_exec(db, how, &args, &done)) != NULL)
		return e;
	if (done.affected == 0)
		return err_tell(ERR_INVALID,
		    "The pipeline has no steps. Add a step first.");
	return move_created(db, id);
}

const struct err *
deployment_insert(struct db *db, const struct deployment *d, int64_t *id)
{
	const struct err *e;
	struct db_done done;

	*id = 0;
	if ((e = db_exec(db, &insert, d, &done)) != NULL)
		return e;
	if (done.affected == 0)
		return err_new(ERR_NOTFOUND, "pipeline %lld",
		    (long long)d->pipeline_id);
	*id = done.insert_id;
	return steps_copy(db, &insert_steps, *id, d->pipeline_id);
}

const struct err *
deployment_repeat(struct db *db, int64_t id, int64_t created_by, int64_t *copy)
{
	const struct number args = { .n = created_by, .of = id };
	const struct err *e;
	struct db_done done;

	*copy = 0;
	if ((e = db_exec(db, &repeat, &args, &done)) != NULL)
		return e;
	if (done.affected == 0)
		return err_new(ERR_NOTFOUND, "deployment %lld", (long long)id);
	*copy = done.insert_id;
	return steps_copy(db, &repeat_steps, *copy, id);
}
