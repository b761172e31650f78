/* SPDX-License-Identifier: ISC */
#include "store/environment.h"

#include "store/child.h"
#include "store/env.h"
#include "store/lock.h"
#include "store/notifier.h"
#include "store/store.h"

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

#define E(m, ...) FIELD(struct environment, m, __VA_ARGS__)
static const struct field environment_fields[] = {
	E(id, FIELD_OUT, .doc = "Id of the environment."),
	E(project_id, FIELD_OUT | FIELD_IN | FIELD_MUST | FIELD_ONCE, .min = 1,
	    .doc = "Project of the environment."),
	E(name, FIELD_OUT | FIELD_IN | FIELD_MUST, .min = 1, .max = 50,
	    .pattern = "[A-Za-z0-9][A-Za-z0-9._-]*",
	    .doc = "Name, unique in its project regardless of case."),
	E(url, FIELD_OUT | FIELD_IN | FIELD_NULL, .max = 1000,
	    .pattern = "https?://[!-~]+",
	    .doc = "Address at which the result can be seen."),
	E(position, FIELD_OUT | FIELD_IN, .max = 1000000,
	    .doc = "Place in lists, from small to large; environments with "
		   "the same position are ordered by id. The default is "
		   "after the last one."),
	E(branches, FIELD_OUT | FIELD_IN, .max = PATTERNS_MAX,
	    .shape = &environment_pattern_shape,
	    .doc = "Patterns of the branches that it accepts; empty = "
		   "none if it has tags, else any. " PATTERN_DOC),
	E(tags, FIELD_OUT | FIELD_IN, .max = PATTERNS_MAX,
	    .shape = &environment_pattern_shape,
	    .doc = "Patterns of the tags that it accepts; empty = none if it "
		   "has branches, else any."),
	E(variables, FIELD_OUT | FIELD_IN, .max = 500,
	    .shape = &environment_variable_shape,
	    .doc = "Variables of deployments to it."),
	E(approval, FIELD_OUT | FIELD_IN, .values = environment_approvals,
	    .named = "EnvironmentApproval",
	    .doc = "Whether a user other than the one who starts a "
		   "deployment must approve it (required), or not (none, the "
		   "default)."),
	E(approvers, FIELD_OUT | FIELD_IN, .max = 100,
	    .shape = &environment_approver_shape,
	    .doc = "Users who may approve deployments; empty = any "
		   "maintainer."),
	E(runner, FIELD_OUT | FIELD_IN | FIELD_NULL | FIELD_LINE, .min = 1,
	    .max = 255,
	    .doc = "Name or label of the runners that run deployments to it; "
		   "null = any."),
	E(valid, FIELD_OUT | FIELD_NUMBER, .doc = "1; 0 if deleted."),
	E(created_at, FIELD_OUT, .doc = "Time of creation."),
	E(updated_at, FIELD_OUT, .doc = "Time of the last change."),
	E(created_by, FIELD_OUT | FIELD_NULL, .doc = "User who created it."),
	E(lock, FIELD_OUT | FIELD_ONE | FIELD_NULL, .shape = &lock_shape,
	    .doc = "The lock of the environment."),
	E(live, FIELD_OUT | FIELD_ONE | FIELD_NULL, .shape = &live_shape,
	    .doc = "The last successful deployment to it; dry runs do not "
		   "count."),
	FIELD_END,
};

const struct shape environment_shape = {
	.name = "Environment",
	.fields = environment_fields,
	.size = sizeof(struct environment),
	.doc = "A place that a project is deployed to.",
};

#include "store/environment.sql.h"

static const struct child child = CHILD(environment);

/* Deletes the environments of a deleted project. */
static const struct err *
delete_of_project(struct db *db, int64_t project_id)
{
	return child_delete(db, &sql_environment_delete_of, project_id);
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
	if ((e = db_rows(db, a, &sql_environment_two, &args, &list)) != NULL)
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

	return db_row(db, a, &sql_environment_hold_project, &args, &found);
}

const struct err *
environment_by_id(struct db *db, struct arena *a, int64_t id,
    struct environment *out)
{
	const struct environment args = { .id = id };
	const struct err *e;

	if ((e = db_row(db, a, &sql_environment_by_id, &args, out)) == NULL)
		row_fill(out);
	return e;
}

const struct err *
environment_lock(struct db *db, struct arena *a, int64_t id,
    struct environment *out)
{
	const struct environment args = { .id = id };
	const struct err *e;

	if ((e = db_row(db, a, &sql_environment_lock, &args, out)) != NULL)
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
		if ((e = db_row(db, a, &sql_environment_next, &args, &last)) !=
		    NULL)
			return e;
		args.position = (struct maybe){ .n = last.n, .set = true };
	}
	if ((e = db_exec(db, &sql_environment_insert, &args, &done)) != NULL)
		return e;
	*id = done.insert_id;
	return NULL;
}

const struct err *
environment_update(struct db *db, const struct environment *env)
{
	return db_exec(db, &sql_environment_update, env, NULL);
}

const struct err *
environment_delete(struct db *db, int64_t id)
{
	const struct err *e = child_delete(db, &sql_environment_delete_one, id);

	return e != NULL ? e : notifier_delete_of_environment(db, id);
}

const struct err *
environment_secrets_find(struct db *db, struct arena *a, int64_t id,
    struct environment_secrets *out)
{
	const struct environment_secrets args = { .id = id };

	return db_row(db, a, &sql_environment_secrets_find, &args, out);
}

const struct err *
environment_secrets_save(struct db *db,
    const struct environment_secrets *secrets)
{
	return db_exec(db, &sql_environment_secrets_save, secrets, NULL);
}
