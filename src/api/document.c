/* SPDX-License-Identifier: ISC */
#include "api/document.h"

#include "deploy/scheduled.h"
#include "store/user.h"

#define ITEMS_MAX 1000 /* of one kind */
#define IO (FIELD_OUT | FIELD_IN)
#define NEEDED (FIELD_OUT | FIELD_IN | FIELD_MUST)
#define NULLABLE (FIELD_OUT | FIELD_IN | FIELD_NULL)

#define T(m, ...) FIELD(struct trigger, m, __VA_ARGS__)
static const struct field trigger_fields[] = {
	T(branch, NULLABLE, .doc = "Pattern of branches; null = tags."),
	T(tag, NULLABLE, .doc = "Pattern of tags; null = branches."),
	FIELD(struct document_trigger, pipeline, NEEDED,
	    .doc = "Name of the pipeline to start."),
	FIELD(struct document_trigger, environment, NULLABLE,
	    .doc = "Name of the environment to deploy to."),
	T(env_vars, IO | FIELD_GAPS, .max = 1000, .named = "EnvVars",
	    .doc = "Environment variables of the deployment; null in place of "
		   "secret values."),
	T(paths, IO, .shape = &trigger_path_shape,
	    .doc = "Patterns of files of which the push must change one."),
	T(supersede, IO | FIELD_TRUE,
	    .doc = "Whether a newer push cancels older pending deployments."),
	FIELD_END,
};
static const struct shape document_trigger_shape = {
	.name = "DocumentTrigger",
	.fields = trigger_fields,
	.size = sizeof(struct document_trigger),
	.doc = "A trigger in a document.",
};

#define S(m, ...) FIELD(struct step, m, __VA_ARGS__)
static const struct field step_fields[] = {
	S(name, NEEDED, .doc = "Name of the step."),
	S(script, NEEDED, .doc = "Script."),
	S(timeout_seconds, NULLABLE, .doc = "Time limit of the step."),
	S(run_when, IO, .doc = "success, failure or always."),
	FIELD_END,
};
static const struct shape document_step_shape = {
	.name = "DocumentStep",
	.fields = step_fields,
	.size = sizeof(struct step),
	.doc = "A step in a document.",
};

#define P(m, ...) FIELD(struct pipeline, m, __VA_ARGS__)
static const struct field pipeline_fields[] = {
	P(name, NEEDED, .doc = "Name of the pipeline."),
	P(description, NULLABLE, .doc = "Description of the pipeline."),
	P(timeout_seconds, NULLABLE, .doc = "Time limit of a run."),
	P(checkout, IO, .values = pipeline_checkouts, .named = "Checkout",
	    .doc = "Files that the first step finds."),
	P(steps, IO, .max = PIPELINE_STEPS_MAX, .shape = &document_step_shape,
	    .doc = "Steps in order."),
	FIELD_END,
};
static const struct shape document_pipeline_shape = {
	.name = "DocumentPipeline",
	.fields = pipeline_fields,
	.size = sizeof(struct pipeline),
	.doc = "A pipeline in a document.",
};

static const struct field approver_fields[] = {
	FIELD(struct document_approver, username, IO, .doc = "Username."),
	FIELD_END,
};
static const struct shape document_approver_shape = {
	.name = "DocumentApprover",
	.fields = approver_fields,
	.size = sizeof(struct document_approver),
	.bare = true,
};

#define E(m, ...) FIELD(struct environment, m, __VA_ARGS__)
static const struct field environment_fields[] = {
	E(name, NEEDED, .doc = "Name of the environment."),
	E(url, NULLABLE, .doc = "Address at which the result can be seen."),
	E(position, NULLABLE, .max = 1000000, .doc = "Place in lists."),
	E(branches, IO, .shape = &environment_pattern_shape,
	    .doc = "Patterns of the branches that it accepts."),
	E(tags, IO, .shape = &environment_pattern_shape,
	    .doc = "Patterns of the tags that it accepts."),
	E(variables, IO, .max = 500, .shape = &environment_variable_shape,
	    .doc = "Variables; null in place of secret values."),
	E(approval, IO, .values = environment_approvals,
	    .named = "EnvironmentApproval",
	    .doc = "Whether deployments require approval."),
	FIELD(struct document_environment, approvers, IO,
	    .shape = &document_approver_shape,
	    .doc = "Usernames of those who may approve."),
	E(runner, NULLABLE, .doc = "Name or label of its runners."),
	FIELD_END,
};
static const struct shape document_environment_shape = {
	.name = "DocumentEnvironment",
	.fields = environment_fields,
	.size = sizeof(struct document_environment),
	.doc = "An environment in a document.",
};

#define C(m, ...) FIELD(struct schedule, m, __VA_ARGS__)
static const struct field schedule_fields[] = {
	C(name, NEEDED, .doc = "Name of the schedule."),
	FIELD(struct document_schedule, pipeline, NEEDED,
	    .doc = "Name of the pipeline to run."),
	FIELD(struct document_schedule, environment, NULLABLE,
	    .doc = "Name of the environment to deploy to."),
	C(cron, NEEDED, .doc = "When it fires."),
	C(timezone, IO, .doc = "Time zone of the times."),
	C(branch, NULLABLE, .doc = "Branch to deploy."),
	C(env_vars, IO, .max = 1000,
	    .doc = "Environment variables of the deployments."),
	C(active, IO | FIELD_TRUE, .doc = "Whether it fires."),
	FIELD_END,
};
static const struct shape document_schedule_shape = {
	.name = "DocumentSchedule",
	.fields = schedule_fields,
	.size = sizeof(struct document_schedule),
	.doc = "A schedule in a document.",
};

#define N(m, ...) FIELD(struct notifier, m, __VA_ARGS__)
static const struct field notifier_fields[] = {
	N(kind, NEEDED, .doc = "mail, text or webhook."),
	N(target, NEEDED, .doc = "Receiver."),
	FIELD(struct document_notifier, environment, NULLABLE,
	    .doc = "Name of the environment of the events; null = all."),
	N(events, NEEDED, .shape = &notifier_event_shape,
	    .doc = "Events of which it sends messages."),
	N(active, IO | FIELD_TRUE, .doc = "Whether it sends messages."),
	FIELD_END,
};
static const struct shape document_notifier_shape = {
	.name = "DocumentNotifier",
	.fields = notifier_fields,
	.size = sizeof(struct document_notifier),
	.doc = "A notifier in a document, identified by kind, target and "
	       "environment.",
};

#define J(m, ...) FIELD(struct project, m, __VA_ARGS__)
#define D(m, shape_, ...)                                                      \
	FIELD(struct document, m, IO, .max = ITEMS_MAX, .shape = (shape_),     \
	    __VA_ARGS__)
static const struct field document_fields[] = {
	J(name, NEEDED, .doc = "Name of the project."),
	J(description, NULLABLE, .doc = "Description of the project."),
	J(repository, NEEDED, .doc = "URL of the Git repository."),
	J(project_dir, IO,
	    .doc = "Directory of the workspace; that of an existing project "
		   "cannot change."),
	J(default_branch, NULLABLE, .doc = "Branch to deploy by default."),
	J(env_presets, IO, .shape = &preset_shape,
	    .doc = "Form fields for environment variables; null in place of "
		   "secret defaults."),
	J(extra_env, IO,
	    .doc = "Who may set variables that envPresets do not name."),
	J(badge, IO, .doc = "Whether anyone can read the badge."),
	D(triggers, &document_trigger_shape,
	    .doc = "Pipelines that pushes start."),
	D(pipelines, &document_pipeline_shape, .doc = "Pipelines."),
	D(environments, &document_environment_shape, .doc = "Environments."),
	D(schedules, &document_schedule_shape, .doc = "Schedules."),
	D(notifiers, &document_notifier_shape, .doc = "Notifiers."),
	FIELD_END,
};
const struct shape document_shape = {
	.name = "ProjectDocument",
	.fields = document_fields,
	.size = sizeof(struct document),
	.doc = "A project and all that belongs to it, with names instead of "
	       "ids.",
};

static const char *
pipeline_name(const struct document *doc, int64_t id)
{
	const struct pipeline *p = doc->pipelines.items;
	size_t i;

	for (i = 0; i < doc->pipelines.n; i++)
		if (p[i].id == id)
			return p[i].name;
	return NULL;
}

/* False if it was deleted; none has no name. */
static bool
environment_name(const struct document *doc, struct maybe id, const char **out)
{
	const struct document_environment *env = doc->environments.items;
	size_t i;

	*out = NULL;
	for (i = 0; id.set && *out == NULL && i < doc->environments.n; i++)
		if (env[i].e.id == id.n)
			*out = env[i].e.name;
	return *out != NULL || !id.set;
}

static const struct err *
approvers_read(struct db *db, struct arena *a, struct document_environment *env)
{
	const struct environment_approver *id;
	struct document_approver *to;
	const struct err *e;
	struct list ids;
	struct user user;
	size_t i;

	if ((e = json_items(a, &environment_approver_shape, env->e.approvers.s,
		 &ids)) != NULL)
		return e;
	id = ids.items;
	env->approvers.items = to = arena_alloc(a, ids.n, sizeof(*to));
	for (i = 0; i < ids.n; i++) {
		e = user_by_id(db, a, id[i].user_id, &user);
		if (e == NULL)
			to[env->approvers.n++].username = user.username;
		else if (e->code != ERR_NOTFOUND)
			return e;
	}
	return NULL;
}

static const struct err *
environments_read(struct db *db, struct arena *a, struct document *doc)
{
	struct page all = { .page = 1, .limit = ITEMS_MAX };
	struct document_environment *to;
	const struct environment *from;
	const struct err *e;
	struct list list;
	size_t i;

	if ((e = environment_page(db, a, doc->p.id, &all, &list)) != NULL)
		return e;
	from = list.items;
	to = arena_alloc(a, list.n, sizeof(*to));
	doc->environments = (struct list){ .items = to, .n = list.n };
	for (i = 0; e == NULL && i < list.n; i++) {
		to[i].e = from[i];
		e = approvers_read(db, a, &to[i]);
	}
	return e;
}

static const struct err *
triggers_read(struct arena *a, struct document *doc)
{
	struct document_trigger *to, *one;
	const struct trigger *from;
	const struct err *e;
	struct list list;
	size_t i;

	if ((e = json_items(a, &trigger_shape, doc->p.triggers.s, &list)) !=
	    NULL)
		return e;
	from = list.items;
	doc->triggers.items = to = arena_alloc(a, list.n, sizeof(*to));
	for (i = 0; i < list.n; i++) {
		one = &to[doc->triggers.n];
		one->t = from[i];
		one->pipeline = pipeline_name(doc, from[i].pipeline_id);
		if (environment_name(doc, from[i].environment_id,
			&one->environment) &&
		    one->pipeline != NULL)
			doc->triggers.n++;
	}
	return NULL;
}

static const struct err *
schedules_read(struct db *db, struct arena *a, struct document *doc)
{
	struct page all = { .page = 1, .limit = ITEMS_MAX };
	struct document_schedule *to, *one;
	struct schedule *from;
	const struct err *e;
	struct list list;
	size_t i;

	if ((e = schedule_page(db, a, doc->p.id, &all, &list)) != NULL)
		return e;
	from = list.items;
	doc->schedules.items = to = arena_alloc(a, list.n, sizeof(*to));
	for (i = 0; i < list.n; i++) {
		if ((e = scheduled_open(a, &from[i])) != NULL)
			return e;
		one = &to[doc->schedules.n];
		one->s = from[i];
		one->pipeline = pipeline_name(doc, from[i].pipeline_id);
		if (environment_name(doc, from[i].environment_id,
			&one->environment) &&
		    one->pipeline != NULL)
			doc->schedules.n++;
	}
	return NULL;
}

static const struct err *
notifiers_read(struct db *db, struct arena *a, struct document *doc)
{
	struct page all = { .page = 1, .limit = ITEMS_MAX };
	struct document_notifier *to, *one;
	const struct notifier *from;
	const struct err *e;
	struct list list;
	size_t i;

	if ((e = notifier_page(db, a, doc->p.id, &all, &list)) != NULL)
		return e;
	from = list.items;
	doc->notifiers.items = to = arena_alloc(a, list.n, sizeof(*to));
	for (i = 0; i < list.n; i++) {
		one = &to[doc->notifiers.n];
		one->n = from[i];
		if (environment_name(doc, from[i].environment_id,
			&one->environment))
			doc->notifiers.n++;
	}
	return NULL;
}

const struct err *
document_read(struct db *db, struct arena *a, int64_t project_id,
    struct document *out)
{
	struct page all = { .page = 1, .limit = ITEMS_MAX };
	const struct err *e;

	*out = (struct document){ .p.id = project_id };
	if ((e = project_by_id(db, a, project_id, &out->p)) != NULL ||
	    (e = pipeline_page(db, a, project_id, &all, &out->pipelines)) !=
		NULL ||
	    (e = environments_read(db, a, out)) != NULL ||
	    (e = triggers_read(a, out)) != NULL ||
	    (e = schedules_read(db, a, out)) != NULL)
		return e;
	return notifiers_read(db, a, out);
}
