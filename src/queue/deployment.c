/* SPDX-License-Identifier: ISC */
#include "queue/deployment.h"

#include <string.h>

#include "core/buf.h"
#include "core/str.h"
#include "queue/deployment_row.h"
#include "queue/move.h"
#include "queue/stores.h"
#include "queue/waiting.h"

const char *const deployment_triggers[] = { "manual", "retry", "webhook",
	"schedule", DEPLOYMENT_ROLLBACK, DEPLOYMENT_PROMOTION, NULL };
const char *const deployment_approvals[] = { APPROVAL_REQUIRED,
	APPROVAL_GRANTED, APPROVAL_DENIED, NULL };

#define S(m, ...) FIELD(struct deployment_step, m, FIELD_OUT | __VA_ARGS__)
static const struct field deployment_step_fields[] = {
	S(position, 0, .doc = "Position of the step, from 0."),
	S(name, 0, .doc = "Name of the step."),
	S(status, 0, .values = state_steps, .named = "StepStatus",
	    .doc = "Status of the step."),
	S(may_fail, 0,
	    .doc = "Whether the deployment succeeds, with a warning, although "
		   "this step failed."),
	S(exit_code, FIELD_NULL, .doc = "Exit status of the script."),
	S(signal, FIELD_NULL, .doc = "Signal that ended the script."),
	S(started_at, FIELD_NULL, .doc = "Time at which the step started."),
	S(finished_at, FIELD_NULL, .doc = "Time at which the step ended."),
	S(log_offset, FIELD_NULL,
	    .doc = "Offset of the step's output in the log."),
	S(log_length, FIELD_NULL,
	    .doc = "Length of the step's output in bytes."),
	FIELD_END,
};
const struct shape deployment_step_shape = {
	.name = "DeploymentStep",
	.fields = deployment_step_fields,
	.size = sizeof(struct deployment_step),
	.doc = "A step of a deployment and its result.",
};

static const struct field env_key_fields[] = {
	FIELD(struct env_key, text, FIELD_OUT | FIELD_IN, .doc = "A key."),
	FIELD_END,
};
const struct shape env_key_shape = {
	.name = "EnvKey",
	.fields = env_key_fields,
	.size = sizeof(struct env_key),
	.bare = true,
};

#define D(m, ...) FIELD(struct deployment, m, FIELD_OUT | __VA_ARGS__)
static const struct field deployment_fields[] = {
	D(id, 0, .doc = "Id of the deployment."),
	D(project_id, 0, .doc = "Project to deploy."),
	D(pipeline_id, 0, .doc = "Pipeline from which the steps were copied."),
	D(environment_id, FIELD_NULL,
	    .doc = "Environment to deploy to; null if the project had none."),
	D(branch, FIELD_NULL,
	    .doc = "Branch; null if the deployment uses a tag, or the "
		   "repository's HEAD and has not resolved it yet."),
	D(tag, FIELD_NULL, .doc = "Tag; null if it deploys a branch."),
	D(commit_hash, FIELD_NULL, .doc = "Commit; null until it is known."),
	D(commit_message, FIELD_NULL,
	    .doc = "Message of the commit; until the checkout, the message "
		   "from the request. If approval is required, only one that "
		   "was read from the repository."),
	D(env_vars, FIELD_MAP, .named = "EnvVars",
	    .doc = "Environment variables; values of secret presets are null."),
	D(env_vars_sent, FIELD_NULL, .shape = &env_key_shape,
	    .doc = "Keys of envVars that the request itself set, or the "
		   "trigger or schedule, also where the value is secret; null "
		   "if an earlier version created the deployment."),
	D(status, 0, .values = state_deployments, .named = "DeploymentStatus",
	    .doc = "Status of the deployment."),
	D(reason, FIELD_NULL, .values = state_reasons,
	    .named = "DeploymentReason",
	    .doc = "Why it has this status, as a code."),
	D(detail, FIELD_NULL, .doc = "Why it has this status, as text."),
	D(trigger, 0, .values = deployment_triggers,
	    .named = "DeploymentTrigger", .doc = "What started it."),
	D(retry_of, FIELD_NULL, .doc = "Deployment that this one repeats."),
	D(created_by, FIELD_NULL, .doc = "User who started the deployment."),
	D(approval, FIELD_NULL, .values = deployment_approvals,
	    .named = "DeploymentApproval",
	    .doc = "Whether it waits for approval (required), or was approved "
		   "(granted) or denied; null if it needs no approval."),
	D(approval_by, FIELD_NULL, .doc = "User who approved or denied it."),
	D(approval_at, FIELD_NULL, .doc = "Time of that decision."),
	D(approval_comment, FIELD_NULL, .doc = "Comment on that decision."),
	D(rollback_reason, FIELD_NULL,
	    .doc = "Why the user started the rollback; null unless it is one "
		   "with a reason."),
	D(runner, FIELD_NULL, .doc = "Runner that claimed the deployment."),
	D(created_at, 0, .doc = "Time of creation."),
	D(started_at, FIELD_NULL,
	    .doc = "Time at which a runner claimed the deployment."),
	D(finished_at, FIELD_NULL,
	    .doc = "Time at which the deployment ended."),
	D(log_size, 0, .doc = "Current size of the log in bytes."),
	D(warnings, 0,
	    .doc = "How many steps failed that may fail; detail names them if "
		   "the deployment succeeded."),
	D(commit_read, 0,
	    .doc = "Whether the branch or tag and the message of the commit "
		   "were read from the repository; else they are those of the "
		   "request or of the push event."),
	D(queue_position, FIELD_DETAIL | FIELD_NULL,
	    .doc = "Number of pending deployments of the project that come "
		   "before it; null once it has started."),
	D(waiting_for, FIELD_DETAIL, .shape = &waiting_shape,
	    .doc = "Why it does not run yet; empty unless it is pending."),
	D(steps, FIELD_DETAIL, .shape = &deployment_step_shape,
	    .doc = "Steps with their results."),
	FIELD_END,
};
const struct shape deployment_shape = {
	.name = "Deployment",
	.fields = deployment_fields,
	.size = sizeof(struct deployment),
	.doc = "A run of a pipeline for a commit of its project.",
};

#define R(m, ...) FIELD(struct deployment_request, m, FIELD_IN | __VA_ARGS__)
static const struct field request_fields[] = {
	R(project_id, FIELD_MUST, .min = 1, .doc = "Project to deploy."),
	R(pipeline_id, FIELD_NULL, .min = 1,
	    .doc = "Pipeline of the project; required if the project has "
		   "several."),
	R(environment_id, FIELD_NULL, .min = 1,
	    .doc = "Environment of the project; required if it has several. It "
		   "must accept the branch or tag."),
	R(branch, FIELD_NULL | FIELD_LINE, .min = 1, .max = 255,
	    .shown = FIELD_BRANCH,
	    .doc = "Branch; the default is the project's default branch, then "
		   "the repository's HEAD."),
	R(tag, FIELD_NULL | FIELD_LINE, .min = 1, .max = 255,
	    .shown = FIELD_BRANCH, .doc = "Tag, instead of a branch."),
	R(commit_hash, FIELD_NULL, .min = 7, .max = 64,
	    .pattern = "[0-9a-fA-F]{7,40}|[0-9a-fA-F]{64}",
	    .doc = "Commit: the full hash (40 digits, or 64 for SHA-256), or "
		   "at least 7 leading digits of a commit on a branch. The "
		   "default is the newest commit of the branch, or that of the "
		   "tag."),
	R(commit_message, FIELD_NULL | FIELD_TEXT, .max = 2000,
	    .doc = "Message to show until the checkout reads the commit's "
		   "own."),
	R(env_vars, FIELD_GAPS, .max = 1000, .named = "EnvVars",
	    .doc = "Environment variables, validated against envPresets. Null, "
		   "valid for secret presets only, has the same effect as "
		   "leaving the variable out."),
	FIELD_END,
};
const struct shape deployment_request_shape = {
	.name = "DeploymentRequest",
	.fields = request_fields,
	.size = sizeof(struct deployment_request),
	.doc = "A deployment to create.",
};

struct log_ids {
	const char *ids; /* "[1,2]" */
};

/* Arguments and results of small queries. */
struct number {
	int64_t n;
	int64_t of;
};

#include "queue/deployment.sql.h"

/* Cancels the pending deployments of a deleted project. */
static const struct err *
cancel_of_project(struct db *db, int64_t project_id)
{
	const struct move canceled = { .project_id = project_id,
		.from = STATE_PENDING,
		.to = STATE_CANCELED,
		.reason = REASON_DELETED,
		.detail = state_unstarted(REASON_DELETED) };
	int64_t n;

	return move_deployment(db, &canceled, &n);
}

const struct store deployment_store = {
	.stmts = deployment_stmts,
	.with_project = cancel_of_project,
};

const struct err *
deployment_row(struct db *db, struct arena *a, int64_t id,
    struct deployment *out)
{
	const struct deployment args = { .id = id };

	return db_row(db, a, &sql_deployment_by_id, &args, out);
}

const struct err *
deployment_logs_measure(struct db *db, struct arena *a, struct list *list)
{
	struct deployment *d = list->items;
	const struct deployment *found;
	struct log_ids args;
	const struct err *e;
	struct list sizes;
	struct buf ids;
	size_t i, k, n = 0;

	buf_init(&ids, 4096);
	for (i = 0; i < list->n; i++)
		if (str_eq(d[i].status, state_kinds[STATE_RUNNING].name))
			buf_printf(&ids, "%c%lld", n++ == 0 ? '[' : ',',
			    (long long)d[i].id);
	buf_putc(&ids, ']');
	args.ids = ids.data;
	e = n == 0 ? NULL :
		     db_rows(db, a, &sql_deployment_log_sizes, &args, &sizes);
	buf_release(&ids);
	if (e != NULL || n == 0)
		return e;
	found = sizes.items;
	for (i = 0; i < list->n; i++)
		for (k = 0; k < sizes.n; k++)
			if (found[k].id == d[i].id)
				d[i].log_size = found[k].log_size;
	return NULL;
}

const struct err *
deployment_by_id(struct db *db, struct arena *a, int64_t id,
    struct deployment *out)
{
	const struct deployment args = { .id = id };
	struct list one = { .items = out, .n = 1 };
	const struct err *e;

	(void)memset(out, 0, sizeof(*out));
	if ((e = deployment_row(db, a, id, out)) != NULL ||
	    (e = deployment_logs_measure(db, a, &one)) != NULL)
		return e;
	if ((e = db_rows(db, a, &sql_deployment_steps, &args, &out->steps)) !=
	    NULL)
		return e;
	if (!str_eq(out->status, state_kinds[STATE_PENDING].name))
		return NULL;
	return waiting_find(db, a, out);
}

const struct err *
deployment_unended(struct db *db, struct arena *a, int64_t project_id,
    bool *out)
{
	const struct number args = { .of = project_id };
	const struct err *e;
	struct number found;

	*out = false;
	if ((e = db_row(db, a, &sql_deployment_unended, &args, &found)) == NULL)
		*out = found.n > 0;
	return e;
}

const struct err *
deployment_cancel(struct db *db, struct arena *a, int64_t id, bool *changed)
{
	const struct deployment args = { .id = id };
	struct move canceled = { .id = id,
		.to = STATE_CANCELED,
		.reason = REASON_CANCELED,
		.detail = state_unstarted(REASON_CANCELED) };
	struct deployment found;
	struct db_done done = { .affected = 0 };
	const struct err *e;
	int64_t n;

	*changed = false;
	if ((e = db_row(db, a, &sql_deployment_lock, &args, &found)) != NULL)
		return e;
	canceled.from = state_find(found.status);
	if (canceled.from == STATE_RUNNING) {
		e = db_exec(db, &sql_deployment_cancel_ask, &args, &done);
		*changed = done.affected > 0;
		return e;
	}
	if (canceled.from != STATE_PENDING)
		return err_public(ERR_CONFLICT,
		    "The deployment has ended already, with status \"%s\".",
		    found.status);
	*changed = true;
	return move_deployment(db, &canceled, &n);
}
