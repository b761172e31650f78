/* SPDX-License-Identifier: ISC */
#include "api/document.h"

#include "deploy/scheduled.h"
#include "store/user.h"

#define ITEMS_MAX 1000 /* of one kind */
#define NAMES_ARENA ((size_t)1 << 20)
#define ITEM_ARENA ((size_t)16 << 20)
/* The document and the largest item after which it is rejected. */
#define TEXT_MAX (DOCUMENT_MAX + ((size_t)8 << 20))
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
	    .doc = "Patterns of files; the push must change a file that one of "
		   "them matches."),
	T(supersede, IO | FIELD_TRUE,
	    .doc = "Whether a newer push cancels older pending deployments; "
		   "default true."),
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
	S(directory, NULLABLE, .doc = "Directory that it runs in."),
	S(timeout_seconds, NULLABLE, .doc = "Time limit of the step."),
	S(run_when, IO, .doc = "success, failure or always."),
	S(may_fail, IO, .doc = "Whether its failure is only a warning."),
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
	C(active, IO | FIELD_TRUE, .doc = "Whether it fires; default true."),
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
	N(active, IO | FIELD_TRUE,
	    .doc = "Whether it sends messages; default true."),
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
/* clang-format off */
#define HEAD								\
	J(name, NEEDED, .doc = "Name of the project."),			\
	J(description, NULLABLE, .doc = "Description of the project."),	\
	J(repository, NEEDED, .doc = "URL of the Git repository."),	\
	J(project_dir, IO,						\
	    .doc = "Directory of the workspace; that of an existing "	\
		   "project cannot change."),				\
	J(default_branch, NULLABLE,					\
	    .doc = "Branch to deploy by default."),			\
	J(env_presets, IO, .shape = &preset_shape,			\
	    .doc = "Form fields for environment variables; null in place " \
		   "of secret defaults."),				\
	J(extra_env, IO,						\
	    .doc = "Who may set variables that envPresets do not name."), \
	J(badge, IO, .doc = "Whether anyone can read the badge."),	\
	J(submodules, NULLABLE | FIELD_TRUTH, .max = 1,			\
	    .doc = "Whether to fetch submodules; null = as the setting "	\
		   "runner.submodules says."),				\
	J(submodule_repositories, IO, .shape = &submodule_path_shape,	\
	    .doc = "Repositories of the Git server that are read for "	\
		   "submodules."),					\
	J(lfs, IO | FIELD_TRUE,						\
	    .doc = "Whether to fetch the files of Git LFS; default true."),	\
	D(triggers, &document_trigger_shape,				\
	    .doc = "Pipelines that pushes start.")
/* clang-format on */
static const struct field head_fields[] = { HEAD, FIELD_END };
/* The members before the lists that can be large. */
static const struct shape head_shape = {
	.name = "ProjectDocumentHead",
	.fields = head_fields,
	.size = sizeof(struct document),
};
static const struct field document_fields[] = {
	HEAD,
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

/* The name of a pipeline or an environment. */
struct ref {
	int64_t id;
	const char *name;
};

struct refs {
	struct ref *item;
	size_t n;
};

struct export
{
	struct db *db;
	struct arena *a;    /* of the names */
	struct arena *work; /* of one item */
	int64_t project_id;
	struct refs pipelines;
	struct refs environments;
};

static const struct err *
too_large(void)
{
	return err_public(ERR_CONFLICT,
	    "The project is too large for a document: an export has at most "
	    "%zu MiB, %d values and %d items of one kind. Read its parts by "
	    "their own routes.",
	    DOCUMENT_MAX >> 20, JSON_VALUES, ITEMS_MAX);
}

/* NULL if it was deleted. */
static const char *
name_of(const struct refs *refs, int64_t id)
{
	size_t i;

	for (i = 0; i < refs->n; i++)
		if (refs->item[i].id == id)
			return refs->item[i].name;
	return NULL;
}

static void
name_keep(struct export *x, struct refs *refs, int64_t id, const char *name)
{
	refs->item[refs->n++] = (struct ref){ id, arena_strdup(x->a, name) };
}

/* False if it was deleted; none has no name. */
static bool
environment_name(const struct export *x, struct maybe id, const char **out)
{
	*out = id.set ? name_of(&x->environments, id.n) : NULL;
	return *out != NULL || !id.set;
}

static const struct err *
pipeline_write(struct export *x, const void *item, struct buf *out)
{
	const struct pipeline *p = item;

	name_keep(x, &x->pipelines, p->id, p->name);
	json_write(out, &document_pipeline_shape, p, 0);
	return NULL;
}

static const struct err *
environment_write(struct export *x, const void *item, struct buf *out)
{
	struct document_environment to = {
		.e = *(const struct environment *)item
	};
	const struct environment_approver *id;
	struct document_approver *name;
	const struct err *e;
	struct list ids;
	size_t i;

	name_keep(x, &x->environments, to.e.id, to.e.name);
	if ((e = json_items(x->work, &environment_approver_shape,
		 to.e.approvers.s, &ids)) != NULL)
		return e;
	id = ids.items;
	name = arena_alloc(x->work, ids.n, sizeof(*name));
	to.approvers = (struct list){ .items = name, .n = ids.n };
	/* without deleted users, the list could become empty: any maintainer */
	for (i = 0; i < ids.n; i++)
		if ((e = user_name_of(x->db, x->work, id[i].user_id,
			 &name[i].username)) != NULL)
			return e;
	json_write(out, &document_environment_shape, &to, 0);
	return NULL;
}

static const struct err *
schedule_write(struct export *x, const void *item, struct buf *out)
{
	struct document_schedule to = { .s = *(const struct schedule *)item };
	const struct err *e;

	if ((e = scheduled_open(x->work, &to.s)) != NULL)
		return e;
	to.pipeline = name_of(&x->pipelines, to.s.pipeline_id);
	if (environment_name(x, to.s.environment_id, &to.environment) &&
	    to.pipeline != NULL)
		json_write(out, &document_schedule_shape, &to, 0);
	return NULL;
}

static const struct err *
notifier_write(struct export *x, const void *item, struct buf *out)
{
	struct document_notifier to = { .n = *(const struct notifier *)item };

	if (environment_name(x, to.n.environment_id, &to.environment))
		json_write(out, &document_notifier_shape, &to, 0);
	return NULL;
}

/* The lists, in the order of the document; those with names come first. */
static const struct part_list {
	const char *member;
	const struct err *(*read)(struct db *, struct arena *,
	    int64_t project_id, struct page *, struct list *out);
	/* Writes an item, or nothing if it belongs to a deleted one. */
	const struct err *(
	    *write)(struct export *, const void *item, struct buf *out);
} part_lists[] = {
	{ "pipelines", pipeline_page, pipeline_write },
	{ "environments", environment_page, environment_write },
	{ "schedules", schedule_page, schedule_write },
	{ "notifiers", notifier_page, notifier_write },
};

/* Writes a list. An item can be large, so each is read on its own. */
static const struct err *
list_write(struct export *x, const struct part_list *of, struct buf *out)
{
	struct page one = { .page = 1, .limit = 1 };
	const struct err *e;
	int64_t total = -1;
	struct list list;
	size_t before;

	buf_printf(out, ",\"%s\":[", of->member);
	for (;; one.page++) {
		arena_clear(x->work);
		if ((e = of->read(x->db, x->work, x->project_id, &one,
			 &list)) != NULL)
			return e;
		if (total != -1 && total != one.total)
			return err_public(ERR_UNAVAILABLE,
			    "The project was changed while it was read. Send "
			    "the request again.");
		total = one.total;
		if (total > ITEMS_MAX || out->len > DOCUMENT_MAX)
			return too_large();
		if (list.n == 0)
			break;
		before = out->len;
		if ((e = of->write(x, list.items, out)) != NULL)
			return e;
		if (out->len > before)
			buf_putc(out, ',');
	}
	if (out->len > 0 && out->data[out->len - 1] == ',')
		out->len--;
	buf_putc(out, ']');
	return buf_check(out);
}

/* The project and its triggers. */
static const struct err *
head_write(struct export *x, struct buf *out)
{
	struct document doc = { .p.id = x->project_id };
	struct document_trigger *to, *one;
	const struct trigger *from;
	const struct err *e;
	struct list list;
	size_t i;

	arena_clear(x->work);
	if ((e = project_by_id(x->db, x->work, x->project_id, &doc.p)) !=
		NULL ||
	    (e = json_items(x->work, &trigger_shape, doc.p.triggers.s,
		 &list)) != NULL)
		return e;
	from = list.items;
	doc.triggers.items = to = arena_alloc(x->work, list.n, sizeof(*to));
	for (i = 0; i < list.n; i++) {
		one = &to[doc.triggers.n];
		one->t = from[i];
		one->pipeline = name_of(&x->pipelines, from[i].pipeline_id);
		if (environment_name(x, from[i].environment_id,
			&one->environment) &&
		    one->pipeline != NULL)
			doc.triggers.n++;
	}
	json_write(out, &head_shape, &doc, 0);
	return buf_check(out);
}

static const struct err *
document_build(struct export *x, struct buf *lists, struct buf *out)
{
	const struct err *e;
	struct project p;
	size_t i;

	/* whether it exists */
	if ((e = project_by_id(x->db, x->work, x->project_id, &p)) != NULL)
		return e;
	for (i = 0; i < sizeof(part_lists) / sizeof(part_lists[0]); i++)
		if ((e = list_write(x, &part_lists[i], lists)) != NULL)
			return e;
	buf_puts(out, DOCUMENT_BEFORE);
	if ((e = head_write(x, out)) != NULL)
		return e;
	out->len--; /* the brace */
	buf_add(out, lists->data, lists->len);
	buf_puts(out, "}}");
	if ((e = buf_check(out)) != NULL)
		return e;
	if (out->len > DOCUMENT_MAX)
		return too_large();
	return json_strict(out->data, out->len);
}

const struct err *
document_write(struct db *db, int64_t project_id, struct buf *out)
{
	struct export x = { .db = db,
		.a = arena_open(NAMES_ARENA),
		.work = arena_open(ITEM_ARENA),
		.project_id = project_id };
	const struct err *e;
	struct buf lists;

	x.pipelines.item = arena_alloc(x.a, ITEMS_MAX, sizeof(struct ref));
	x.environments.item = arena_alloc(x.a, ITEMS_MAX, sizeof(struct ref));
	buf_init(&lists, TEXT_MAX);
	e = document_build(&x, &lists, out);
	if (e != NULL && e->code == ERR_TOO_LARGE)
		e = too_large();
	buf_release(&lists);
	arena_close(x.work);
	arena_close(x.a);
	return e;
}
