/* SPDX-License-Identifier: ISC */
#include "store/environment.h"

#include "store/child.h"
#include "store/columns.h"
#include "store/env.h"
#include "store/lock.h"
#include "store/move.h"
#include "store/notifier.h"
#include "store/store.h"

#define A(m) FIELD(struct environment, m, 0)
#define PATTERNS_MAX 100
#define PATTERN_DOC                                                            \
	"* matches any characters except a slash, ? any one of them, ** any "  \
	"characters."

static const struct field pattern_fields[] = {
	FIELD(struct environment_pattern, text,
	    FIELD_OUT | FIELD_IN | FIELD_LINE, .min = 1, .max = 255,
	    .shown = FIELD_BRANCHES, .doc = "A pattern. " PATTERN_DOC),
	FIELD_END,
};
const struct shape environment_pattern_shape = {
	.name = "Pattern",
	.fields = pattern_fields,
	.size = sizeof(struct environment_pattern),
	.bare = true,
};

const char *const environment_approvals[] = { ENVIRONMENT_APPROVAL_NONE,
	ENVIRONMENT_APPROVAL_REQUIRED, NULL };

static const struct field approver_fields[] = {
	FIELD(struct environment_approver, user_id, FIELD_OUT | FIELD_IN,
	    .min = 1, .doc = "Id of a user."),
	FIELD_END,
};
const struct shape environment_approver_shape = {
	.name = "ApproverId",
	.fields = approver_fields,
	.size = sizeof(struct environment_approver),
	.bare = true,
};

#define V(m, fl, ...)                                                          \
	FIELD(struct environment_variable, m, FIELD_OUT | FIELD_IN | (fl),     \
	    __VA_ARGS__)
static const struct field variable_fields[] = {
	V(key, FIELD_MUST, .max = 128, .pattern = ENV_NAME_ERE,
	    .doc = "Name of the variable."),
	V(value, FIELD_NULL, .max = ENV_VALUE_MAX,
	    .doc = "Value. A secret one is returned as null; null keeps it."),
	V(secret, 0, .doc = "Whether the value is encrypted and masked."),
	FIELD_END,
};
const struct shape environment_variable_shape = {
	.name = "EnvironmentVariable",
	.fields = variable_fields,
	.size = sizeof(struct environment_variable),
	.doc = "A variable of an environment.",
};

#define L(m, ...) FIELD(struct environment_live, m, FIELD_OUT | __VA_ARGS__)
static const struct field live_fields[] = {
	L(deployment_id, 0, .doc = "Id of the deployment."),
	L(commit_hash, FIELD_NULL, .doc = "Deployed commit."),
	L(commit_message, FIELD_NULL, .doc = "Message of the commit."),
	L(branch, FIELD_NULL, .doc = "Deployed branch; null if it was a tag."),
	L(tag, FIELD_NULL, .doc = "Deployed tag; null if it was a branch."),
	L(finished_at, FIELD_NULL, .doc = "Time at which it ended."),
	L(created_by, FIELD_NULL, .doc = "User who started it."),
	FIELD_END,
};
static const struct shape live_shape = {
	.name = "EnvironmentLive",
	.fields = live_fields,
	.size = sizeof(struct environment_live),
	.doc = "The last successful deployment to an environment.",
};

/* clang-format off */
#define ENVIRONMENT(X, T)						\
	X(T, KEY, id, FIELD_OUT, .doc = "Id of the environment.")	\
	X(T, ONCE, project_id,						\
	    FIELD_OUT | FIELD_IN | FIELD_MUST | FIELD_ONCE, .min = 1,	\
	    .doc = "Project of the environment.")			\
	X(T, SET, name, FIELD_OUT | FIELD_IN | FIELD_MUST, .min = 1,	\
	    .max = 50, .pattern = "[A-Za-z0-9][A-Za-z0-9._-]*",		\
	    .doc = "Name, unique in its project regardless of case.")	\
	X(T, SET, url, FIELD_OUT | FIELD_IN | FIELD_NULL, .max = 1000,	\
	    .pattern = "https?://[!-~]+",				\
	    .doc = "Address at which the result can be seen.")		\
	X(T, SET, position, FIELD_OUT | FIELD_IN, .max = 1000000,	\
	    .doc = "Place in lists, from small to large; environments "	\
		   "with the same position are ordered by id. The default " \
		   "is after the last one.")				\
	X(T, SET, branches, FIELD_OUT | FIELD_IN, .max = PATTERNS_MAX,	\
	    .shape = &environment_pattern_shape,			\
	    .doc = "Patterns of the branches that it accepts; empty = "	\
		   "none if it has tags, else any. " PATTERN_DOC)	\
	X(T, SET, tags, FIELD_OUT | FIELD_IN, .max = PATTERNS_MAX,	\
	    .shape = &environment_pattern_shape,			\
	    .doc = "Patterns of the tags that it accepts; empty = none " \
		   "if it has branches, else any.")			\
	X(T, SET, variables, FIELD_OUT | FIELD_IN, .max = 500,		\
	    .shape = &environment_variable_shape,			\
	    .doc = "Variables of deployments to it.")			\
	X(T, SET, approval, FIELD_OUT | FIELD_IN,			\
	    .values = environment_approvals, .named = "EnvironmentApproval", \
	    .doc = "Whether a user other than the one who starts a "	\
		   "deployment must approve it (required), or not (none, " \
		   "the default).")					\
	X(T, SET, approvers, FIELD_OUT | FIELD_IN, .max = 100,		\
	    .shape = &environment_approver_shape,			\
	    .doc = "Users who may approve deployments; empty = any "	\
		   "maintainer.")					\
	X(T, SET, runner, FIELD_OUT | FIELD_IN | FIELD_NULL | FIELD_LINE, \
	    .min = 1, .max = 255,					\
	    .doc = "Name or label of the runners that run deployments to it; " \
		   "null = any.")					\
	X(T, READ, valid, FIELD_OUT | FIELD_NUMBER,			\
	    .doc = "1; 0 if deleted.")					\
	X(T, READ, created_at, FIELD_OUT, .doc = "Time of creation.")	\
	X(T, READ, updated_at, FIELD_OUT, .doc = "Time of the last change.") \
	X(T, ONCE, created_by, FIELD_OUT | FIELD_NULL,			\
	    .doc = "User who created it.")				\
	X(T, READ, version, 0, .doc = "Number of changes.")		\
	X(T, NONE, lock, FIELD_OUT | FIELD_ONE | FIELD_NULL,		\
	    .shape = &lock_shape, .doc = "The lock of the environment.") \
	X(T, NONE, live, FIELD_OUT | FIELD_ONE | FIELD_NULL,		\
	    .shape = &live_shape,					\
	    .doc = "The last successful deployment to it; dry runs do "	\
		   "not count.")

static const struct field environment_fields[] = {
	COLUMNS_FIELDS(ENVIRONMENT, struct environment)
};

#define LIVE(X, T)							\
	X(T, KEY, deployment_id, 0)					\
	X(T, READ, commit_hash, 0)					\
	X(T, READ, commit_message, 0)					\
	X(T, READ, branch, 0)						\
	X(T, READ, tag, 0)						\
	X(T, READ, finished_at, 0)					\
	X(T, READ, created_by, 0)
/* A row with its lock and the deployment that is live. */
static const struct field row_fields[] = {
	ENVIRONMENT(COLUMN_FIELD, struct environment)
	COLUMNS_PART(struct environment, lock_row, LOCK_ROW)
	COLUMNS_PART(struct environment, live_row, LIVE)
	FIELD_END,
};
/* clang-format on */

const struct shape environment_shape = {
	.name = "Environment",
	.fields = environment_fields,
	.size = sizeof(struct environment),
	.doc = "A place that a project is deployed to.",
};

#define COLUMNS_C COLUMNS_OF("c", ENVIRONMENT)
#define JOIN_LOCK LOCK_JOIN("c.project_id", "c.id")
#define SELECT                                                                 \
	"SELECT " COLUMNS_C ", " LOCK_COLUMNS                                  \
	", l.id AS deployment_id, l.commit_hash, l.commit_message, l.branch,"  \
	" l.tag, l.finished_at, l.created_by FROM environment c"               \
	" LEFT JOIN deployment l ON l.id = c.live_deployment" JOIN_LOCK

static const struct field id_args[] = { A(id), FIELD_END };
static const struct field id_id_args[] = { A(id), A(id), FIELD_END };
static const struct field project_args[] = { A(project_id), FIELD_END };

static const struct stmt by_id = {
	.name = "environment_by_id",
	.sql = SELECT " WHERE c.id = ? AND c.valid = 1",
	.args = id_args,
	.row = row_fields,
	.rowsize = sizeof(struct environment),
};
static const struct stmt lock = {
	.name = "environment_lock",
	.sql = "SELECT id FROM environment WHERE id = ? AND valid = 1"
	       " FOR UPDATE",
	.args = id_args,
	.row = id_args,
	.rowsize = sizeof(struct environment),
};
/* clang-format off */
CHILD(environment, SELECT, row_fields, "c.project_id, c.position, c.id",
    "c.position, c.id")
/* clang-format on */

static const struct stmt two = {
	.name = "environment_two",
	.sql = "SELECT id FROM environment WHERE valid = 1 AND project_id = ?"
	       " LIMIT 2",
	.args = project_args,
	.row = id_args,
	.rowsize = sizeof(struct environment),
};
static const struct stmt hold_project = {
	.name = "environment_hold_project",
	.sql = "SELECT id FROM project WHERE id ="
	       " (SELECT project_id FROM environment WHERE id = ?"
	       " AND valid = 1) AND valid = 1 FOR UPDATE",
	.args = id_args,
	.row = id_args,
	.rowsize = sizeof(struct environment),
};
static const struct stmt next = {
	.name = "environment_next",
	.sql = "SELECT COALESCE(MAX(position) + 1, 0) AS n FROM environment"
	       " WHERE valid = 1 AND project_id = ?",
	.args = project_args,
	.row = page_count_row,
	.rowsize = sizeof(struct page_count),
};

/* clang-format off */
static const struct field insert_args[] = {
	COLUMNS_INSERT_ARGS(ENVIRONMENT, struct environment)
};
static const struct field update_args[] = {
	COLUMNS_UPDATE_ARGS(ENVIRONMENT, struct environment)
};
/* clang-format on */
static const struct stmt insert = {
	.name = "environment_insert",
	.sql = COLUMNS_INSERT("environment", ENVIRONMENT),
	.args = insert_args,
};
static const struct stmt update = {
	.name = "environment_update",
	.sql = COLUMNS_UPDATE("environment", ENVIRONMENT),
	.args = update_args,
};

static const struct stmt waiting = {
	.name = "environment_waiting",
	.sql =
	    "SELECT id FROM deployment"
	    " FORCE INDEX (deployment_environment_status)"
	    " WHERE project_id = (SELECT project_id FROM environment WHERE id = ?)"
	    " AND environment_id = ? AND status = 'pending' ORDER BY id",
	.args = id_id_args,
	.row = move_id_row,
	.rowsize = sizeof(struct move_id),
};

#define K(m) FIELD(struct environment_secrets, m, 0)
static const struct field secrets_args[] = { K(id), FIELD_END };
static const struct field secrets_row[] = { K(id), K(secret_values),
	FIELD_END };
static const struct field secrets_save_args[] = { K(secret_values), K(id),
	FIELD_END };
static const struct stmt secrets_find = {
	.name = "environment_secrets_find",
	.sql = "SELECT id, secret_values FROM environment"
	       " WHERE id = ? AND valid = 1",
	.args = secrets_args,
	.row = secrets_row,
	.rowsize = sizeof(struct environment_secrets),
};
static const struct stmt secrets_save = {
	.name = "environment_secrets_save",
	.sql = "UPDATE environment SET secret_values = ?"
	       " WHERE id = ? AND valid = 1",
	.args = secrets_save_args,
};

static const struct stmt *const environment_stmts[] = {
	&by_id,
	&lock,
	CHILD_STMTS,
	&two,
	&hold_project,
	&next,
	&insert,
	&update,
	&waiting,
	&secrets_find,
	&secrets_save,
	NULL,
};

/* Deletes the environments of a deleted project. */
static const struct err *
delete_of_project(struct db *db, int64_t project_id)
{
	return child_delete(db, &delete_of, project_id);
}

const struct store environment_store = {
	.stmts = environment_stmts,
	.with_project = delete_of_project,
};

/* Points a row to its lock and the deployment that is live. */
static void
row_fill(struct environment *env)
{
	env->lock = lock_joined(&env->lock_row);
	env->live = (struct list){ .items = &env->live_row,
		.n = env->live_row.deployment_id != 0 ? 1 : 0 };
}

const struct err *
environment_page(struct db *db, struct arena *a, int64_t project_id,
    struct page *p, struct list *out)
{
	struct environment *item;
	const struct err *e;
	size_t i;

	e = child_read(db, a, &child, project_id, p, out);
	item = out->items;
	for (i = 0; e == NULL && i < out->n; i++)
		row_fill(&item[i]);
	return e;
}

const struct err *
environment_only(struct db *db, struct arena *a, int64_t project_id,
    int64_t *id)
{
	const struct environment args = { .project_id = project_id };
	const struct environment *found;
	const struct err *e;
	struct list list;

	*id = 0;
	if ((e = db_rows(db, a, &two, &args, &list)) != NULL)
		return e;
	if (list.n > 1)
		return err_new(ERR_CONFLICT, "several environments");
	found = list.items;
	*id = list.n == 0 ? 0 : found->id;
	return NULL;
}

const struct err *
environment_hold_project(struct db *db, struct arena *a, int64_t id)
{
	const struct environment args = { .id = id };
	struct environment found;

	return db_row(db, a, &hold_project, &args, &found);
}

const struct err *
environment_by_id(struct db *db, struct arena *a, int64_t id,
    struct environment *out)
{
	const struct environment args = { .id = id };
	const struct err *e;

	if ((e = db_row(db, a, &by_id, &args, out)) == NULL)
		row_fill(out);
	return e;
}

const struct err *
environment_lock(struct db *db, struct arena *a, int64_t id,
    struct environment *out)
{
	const struct environment args = { .id = id };
	const struct err *e;

	if ((e = db_row(db, a, &lock, &args, out)) != NULL)
		return e;
	return environment_by_id(db, a, id, out);
}

const struct err *
environment_judge(struct db *db, const struct environment *env,
    struct faults *faults)
{
	return child_judge(db, &child, env->id, env->project_id, env->name,
	    faults);
}

const struct err *
environment_insert(struct db *db, struct arena *a,
    const struct environment *env, int64_t *id)
{
	struct environment args = *env;
	struct page_count last;
	const struct err *e;
	struct db_done done;

	*id = 0;
	if (!args.position.set) {
		if ((e = db_row(db, a, &next, &args, &last)) != NULL)
			return e;
		args.position = (struct maybe){ .n = last.n, .set = true };
	}
	if ((e = db_exec(db, &insert, &args, &done)) != NULL)
		return e;
	*id = done.insert_id;
	return NULL;
}

const struct err *
environment_update(struct db *db, const struct environment *env)
{
	return db_exec(db, &update, env, NULL);
}

static const struct err *
waiting_cancel(struct db *db, struct arena *a, const struct environment *env)
{
	const struct err *e;
	struct list list;

	e = db_rows(db, a, &waiting, env, &list);
	return e != NULL ? e : move_cancel(db, &list, REASON_ENVIRONMENT);
}

const struct err *
environment_delete(struct db *db, struct arena *a, int64_t id)
{
	const struct environment args = { .id = id };
	const struct err *e;

	if ((e = child_delete(db, &delete_one, id)) != NULL ||
	    (e = notifier_delete_of_environment(db, id)) != NULL)
		return e;
	return waiting_cancel(db, a, &args);
}

const struct err *
environment_secrets_find(struct db *db, struct arena *a, int64_t id,
    struct environment_secrets *out)
{
	const struct environment_secrets args = { .id = id };

	return db_row(db, a, &secrets_find, &args, out);
}

const struct err *
environment_secrets_save(struct db *db,
    const struct environment_secrets *secrets)
{
	return db_exec(db, &secrets_save, secrets, NULL);
}
