/* SPDX-License-Identifier: ISC */
/* Creates deployments, from a pipeline or from an earlier deployment. */
#include "core/str.h"
#include "store/deployment.h"
#include "store/move.h"
#include "store/store.h"

#define SMALL_ARENA 65536
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
/* A locking read: it also sees what was committed since the transaction
 * began. */
static const struct stmt homeless = {
	.name = "deployment_homeless",
	.sql = "SELECT e.id AS n FROM deployment d"
	       " JOIN environment e ON e.id = d.environment_id"
	       " WHERE d.id = ? AND e.valid = 0 LOCK IN SHARE MODE",
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

#define S(m) FIELD(struct deployment_source, m, 0)
static const struct field source_args[] = { S(pipeline_id), S(project_id),
	FIELD_END };
static const struct field any_source_args[] = { S(project_id), FIELD_END };
static const struct field source_row[] = { S(project_id), S(default_branch),
	S(env_presets), S(extra_env), S(pipeline_id), S(timeout_seconds),
	S(checkout), S(steps), S(environments), S(variables), FIELD_END };
/* Locks the project before its pipeline. The subqueries lock nothing, and read
 * the steps after the lock on their pipeline was obtained. */
#define SOURCE                                                                 \
	"SELECT p.id AS project_id, p.default_branch, p.env_presets,"          \
	" p.extra_env, l.id AS pipeline_id, l.timeout_seconds, l.checkout,"    \
	" EXISTS (SELECT 1 FROM step s WHERE s.pipeline_id = l.id"             \
	" AND s.valid = 1) AS steps,"                                          \
	" EXISTS (SELECT 1 FROM environment e WHERE e.valid = 1"               \
	" AND e.project_id = p.id) AS environments,"                           \
	" EXISTS (SELECT 1 FROM variable_project v"                            \
	" WHERE v.project_id = p.id) AS variables"                             \
	" FROM project p LEFT JOIN pipeline l"                                 \
	" ON l.project_id = p.id AND l.valid = 1"
#define SOURCE_OF " WHERE p.id = ? AND p.valid = 1"
static const struct stmt source = {
	.name = "deployment_source",
	.sql = SOURCE " AND l.id = ?" SOURCE_OF " FOR UPDATE",
	.args = source_args,
	.row = source_row,
	.rowsize = sizeof(struct deployment_source),
};
static const struct stmt any_source = {
	.name = "deployment_any_source",
	.sql = SOURCE SOURCE_OF " LIMIT 2 FOR UPDATE",
	.args = any_source_args,
	.row = source_row,
	.rowsize = sizeof(struct deployment_source),
};

/* The columns that a retry copies; an approver is shown no text that was not
 * read from the repository. */
#define MESSAGE_COPIED                                                         \
	"IF(? = 'required' AND NOT commit_read AND NOT (status = 'success'"    \
	" AND checkout <> 'none'), NULL, commit_message)"
/* clang-format off */
#define MADE_OF								\
	"project_id, timeout_seconds, checkout, branch, tag,"		\
	" commit_hash, commit_message," MADE_REST
#define MADE_REST							\
	" env_vars, env_vars_sent, secret_vars, env_role,"		\
	" environment_id, pipeline_id"
/* clang-format on */
#define STEP_OF                                                                \
	"position, name, script, directory, timeout_seconds, run_when,"        \
	" may_fail"

/* The rows as deployment_by_id() would read them. */
/* clang-format off */
#define MADE								\
	" RETURNING id, project_id, pipeline_id, environment_id, branch," \
	" tag, commit_hash, commit_message, env_vars, env_vars_sent,"	\
	" status, reason,"						\
	" detail, `trigger`, retry_of, created_by, approval,"		\
	" approval_by, approval_at, approval_comment, rollback_reason,"	\
	" runner, created_at, started_at, finished_at, log_size,"	\
	" warnings, env_role, checkout"
/* clang-format on */
#define STEPS_MADE                                                                  \
	" ORDER BY position RETURNING position, name, status, may_fail, exit_code," \
	" `signal`, started_at, finished_at, log_offset, log_length"

static const struct field insert_args[] = { A(project_id), A(timeout_seconds),
	A(checkout), A(branch), A(tag), A(commit_hash), A(commit_message),
	A(env_vars), A(env_vars_sent), A(secret_vars), A(env_role),
	A(environment_id), A(pipeline_id), A(trigger), A(created_by),
	A(read_by), A(commit_read), A(approval), A(turn), A(trigger_key),
	A(when_moved), A(pipeline_id), FIELD_END };
/* clang-format off */
static const struct stmt insert = {
	.name = "deployment_insert",
	.sql = DB_COMPOUND
	    "INSERT INTO deployment (" MADE_OF ", `trigger`, created_by,"
	    " read_by, commit_read, approval, turn, trigger_key, when_moved)"
	    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?,"
	    " COALESCE(?, 'cancel'))" MADE "; "
	    "INSERT INTO deployment_step (deployment_id, " STEP_OF ")"
	    " SELECT LAST_INSERT_ID(), " STEP_OF " FROM step"
	    " WHERE pipeline_id = ? AND valid = 1" STEPS_MADE "; END",
	.args = insert_args,
	.row = deployment_fields,
	.rowsize = sizeof(struct deployment),
	.more = deployment_step_fields,
	.moresize = sizeof(struct deployment_step),
};
/* clang-format on */
static const struct field repeat_args[] = { A(approval), A(trigger),
	A(created_by), A(approval), A(rollback_reason), A(turn), A(retry_of),
	FIELD_END };
static const struct stmt repeat = {
	.name = "deployment_repeat",
	.sql = "INSERT INTO deployment (" MADE_OF ", `trigger`, created_by,"
	       " approval, rollback_reason, turn, commit_read, retry_of)"
	       " SELECT project_id, timeout_seconds, checkout, branch, tag,"
	       " commit_hash, " MESSAGE_COPIED "," MADE_REST
	       ", ?, ?, ?, ?, ?, commit_read, id"
	       " FROM deployment WHERE id = ?" MADE,
	.args = repeat_args,
	.row = deployment_fields,
	.rowsize = sizeof(struct deployment),
};
static const struct field repeat_with_args[] = { A(approval), A(env_vars),
	A(env_vars_sent), A(secret_vars), A(env_role), A(environment_id),
	A(trigger), A(created_by), A(approval), A(rollback_reason), A(turn),
	A(retry_of), FIELD_END };
static const struct stmt repeat_with = {
	.name = "deployment_repeat_with",
	.sql = "INSERT INTO deployment (" MADE_OF ", `trigger`, created_by,"
	       " approval, rollback_reason, turn, commit_read, retry_of)"
	       " SELECT project_id, timeout_seconds, checkout, branch, tag,"
	       " commit_hash, " MESSAGE_COPIED
	       ", ?, ?, ?, ?, ?, pipeline_id, ?,"
	       " ?, ?, ?, ?, commit_read, id FROM deployment WHERE id = ?" MADE,
	.args = repeat_with_args,
	.row = deployment_fields,
	.rowsize = sizeof(struct deployment),
};
static const struct field secrets_args[] = { A(id), FIELD_END };
static const struct field secrets_row[] = { A(secret_vars), FIELD_END };
static const struct stmt secrets = {
	.name = "deployment_secrets",
	.sql = "SELECT secret_vars FROM deployment WHERE id = ?",
	.args = secrets_args,
	.row = secrets_row,
	.rowsize = sizeof(struct deployment),
};
static const struct stmt repeat_steps = {
	.name = "deployment_repeat_steps",
	.sql = "INSERT INTO deployment_step (deployment_id, " STEP_OF ")"
	       " SELECT ?, " STEP_OF " FROM deployment_step"
	       " WHERE deployment_id = ?" STEPS_MADE,
	.args = n_of_args,
	.row = deployment_step_fields,
	.rowsize = sizeof(struct deployment_step),
};

static const struct stmt *const deployment_make_stmts[] = {
	&hold_project,
	&hold_project_of,
	&homeless,
	&share_pipeline,
	&source,
	&any_source,
	&insert,
	&repeat,
	&repeat_with,
	&secrets,
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

static const struct err *
hold_of(struct db *db, struct arena *a, int64_t id)
{
	const struct number args = { .of = id };
	struct number found;

	return db_row(db, a, &hold_project_of, &args, &found);
}

const struct err *
deployment_hold_place(struct db *db, int64_t id, enum reason *deleted)
{
	const struct number args = { .of = id };
	struct arena *a = arena_open(SMALL_ARENA);
	const struct err *e;
	struct list list = { .n = 0 };

	*deleted = REASON_NONE;
	e = hold_of(db, a, id);
	if (e == NULL) {
		e = db_rows(db, a, &homeless, &args, &list);
		if (list.n > 0)
			*deleted = REASON_ENVIRONMENT;
	} else if (e->code == ERR_NOTFOUND) {
		*deleted = REASON_DELETED;
		e = NULL;
	}
	arena_close(a);
	return e;
}

const struct err *
deployment_share_pipeline(struct db *db, struct arena *a, int64_t project_id,
    int64_t pipeline_id)
{
	const struct number args = { .of = project_id, .n = pipeline_id };
	struct number found;

	return db_row(db, a, &share_pipeline, &args, &found);
}

const struct err *
deployment_source(struct db *db, struct arena *a, int64_t project_id,
    struct maybe pipeline_id, struct deployment_source *out)
{
	const struct deployment_source args = { .project_id = project_id,
		.pipeline_id = pipeline_id };
	const struct err *e;
	struct list list;

	*out = (struct deployment_source){ .project_id = 0 };
	e = db_rows(db, a, pipeline_id.set ? &source : &any_source, &args,
	    &list);
	if (e != NULL)
		return e;
	if (list.n == 0)
		return err_new(ERR_NOTFOUND, "project %lld",
		    (long long)project_id);
	*out = *(const struct deployment_source *)list.items;
	out->pipelines = out->pipeline_id.set ? (int64_t)list.n : 0;
	return NULL;
}

/* Announces a new deployment as pending. */
static const struct err *
announce(struct db *db, const struct deployment *d)
{
	if (d->steps.n == 0)
		return err_public(ERR_INVALID,
		    "The pipeline has no steps. Add a step first.");
	return str_eq(d->approval, APPROVAL_REQUIRED) ?
	    move_waiting(db, d->id) :
	    move_created(db, d->id);
}

int64_t
deployment_turn(const struct deployment *d)
{
	if (str_eq(d->approval, APPROVAL_REQUIRED))
		return DEPLOYMENT_LATER;
	return str_eq(d->trigger, DEPLOYMENT_ROLLBACK) ? DEPLOYMENT_FIRST :
							 DEPLOYMENT_NEXT;
}

const struct err *
deployment_insert(struct db *db, struct arena *a, const struct deployment *d,
    struct deployment *out)
{
	struct deployment args = *d;
	const struct err *e;

	args.turn = deployment_turn(d);
	e = db_row_more(db, a, &insert, &args, out, &out->steps);
	return e != NULL ? e : announce(db, out);
}

/* Inserts a copy of the deployment `retry_of` and of its steps. */
static const struct err *
copy(struct db *db, struct arena *a, const struct stmt *how,
    const struct deployment *d, struct deployment *out)
{
	struct deployment args = *d;
	struct number steps = { .of = d->retry_of.n };
	const struct err *e;

	args.turn = deployment_turn(d);
	if ((e = db_row(db, a, how, &args, out)) != NULL)
		return e;
	steps.n = out->id;
	e = db_rows(db, a, &repeat_steps, &steps, &out->steps);
	return e != NULL ? e : announce(db, out);
}

const struct err *
deployment_repeat(struct db *db, struct arena *a, const struct deployment *d,
    struct deployment *out)
{
	return copy(db, a, &repeat, d, out);
}

const struct err *
deployment_repeat_with(struct db *db, struct arena *a,
    const struct deployment *d, struct deployment *out)
{
	return copy(db, a, &repeat_with, d, out);
}

const struct err *
deployment_secrets(struct db *db, struct arena *a, int64_t id,
    struct json_text *out)
{
	const struct deployment args = { .id = id };
	struct deployment found;
	const struct err *e;

	e = db_row(db, a, &secrets, &args, &found);
	*out = (struct json_text){ e == NULL ? found.secret_vars.s : NULL };
	return e;
}
