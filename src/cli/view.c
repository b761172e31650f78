/* SPDX-License-Identifier: ISC */
/* Commands that print objects of the service. */
#include <stdio.h>

#include "cli/approval.h"
#include "cli/deployment.h"
#include "cli/find.h"
#include "cli/slipway.h"
#include "cli/table.h"
#include "core/str.h"

#define D(m, n, fl) COLUMN(struct deployment, m, n, fl)
static const struct column list_columns[] = {
	D(id, "ID", 0),
	D(status, "STATUS", COLUMN_STATUS),
	D(project, "PROJECT", 0),
	D(environment, "ENVIRONMENT", 0),
	D(branch, "BRANCH", 0),
	D(commit_hash, "COMMIT", COLUMN_SHORT),
	D(created_at, "CREATED", 0),
	D(commit_message, "MESSAGE", COLUMN_LINE | COLUMN_CUT),
	D(tag, "TAG", 0),
	D(warnings, "WARNINGS", 0),
	COLUMN_END,
};
static const struct column status_columns[] = {
	D(id, "deployment", 0),
	D(status, "status", COLUMN_STATUS),
	D(reason, "reason", 0),
	D(detail, "detail", 0),
	D(warnings, "warnings", 0),
	D(project, "project", 0),
	D(environment, "environment", 0),
	D(branch, "branch", 0),
	D(tag, "tag", 0),
	D(commit_hash, "commit", 0),
	D(commit_message, "message", COLUMN_LINE),
	D(env_vars_sent, "sets", 0),
	D(trigger, "trigger", 0),
	D(approval, "approval", 0),
	D(approver, "approver", 0),
	D(approval_comment, "comment", COLUMN_LINE),
	D(runner, "runner", 0),
	D(created_at, "created", 0),
	D(started_at, "started", 0),
	D(finished_at, "finished", 0),
	COLUMN_END,
};

#define S(m, n, fl) COLUMN(struct deployment_step, m, n, fl)
static const struct column step_columns[] = {
	S(name, "STEP", 0),
	S(status, "STATUS", COLUMN_STATUS),
	S(started_at, "STARTED", 0),
	S(finished_at, "FINISHED", 0),
	S(exit_code, "EXIT", 0),
	COLUMN_END,
};

#define W(m, n) COLUMN(struct deployment_wait, m, n, 0)
static const struct column wait_columns[] = {
	W(reason, "WAITING FOR"),
	W(detail, "BECAUSE"),
	COLUMN_END,
};

struct project {
	int64_t id;
	const char *name;
	const char *repository;
	const char *default_branch;
	const char *lock;
};
#define P(m, p) JSON_PATH(struct project, m, p)
static const struct json_path project_paths[] = {
	P(id, "id"),
	P(name, "name"),
	P(repository, "repository"),
	P(default_branch, "defaultBranch"),
	P(lock, "lock.reason"),
	JSON_PATH_END,
};
static const struct column project_columns[] = {
	COLUMN(struct project, id, "ID", 0),
	COLUMN(struct project, name, "NAME", 0),
	COLUMN(struct project, repository, "REPOSITORY", 0),
	COLUMN(struct project, default_branch, "BRANCH", 0),
	COLUMN(struct project, lock, "LOCKED", COLUMN_CUT),
	COLUMN_END,
};

struct pipeline {
	int64_t id;
	const char *name;
	const char *description;
};
static const struct json_path pipeline_paths[] = {
	JSON_PATH(struct pipeline, id, "id"),
	JSON_PATH(struct pipeline, name, "name"),
	JSON_PATH(struct pipeline, description, "description"),
	JSON_PATH_END,
};
static const struct column pipeline_columns[] = {
	COLUMN(struct pipeline, id, "ID", 0),
	COLUMN(struct pipeline, name, "NAME", 0),
	COLUMN(struct pipeline, description, "DESCRIPTION",
	    COLUMN_LINE | COLUMN_CUT),
	COLUMN_END,
};

struct environment {
	int64_t id;
	const char *name;
	int64_t live;
	const char *commit_hash;
	struct when finished_at;
	const char *url;
	const char *lock;
};
#define E(m, p) JSON_PATH(struct environment, m, p)
static const struct json_path environment_paths[] = {
	E(id, "id"),
	E(name, "name"),
	E(live, "live.deploymentId"),
	E(commit_hash, "live.commitHash"),
	E(finished_at, "live.finishedAt"),
	E(url, "url"),
	E(lock, "lock.reason"),
	JSON_PATH_END,
};
static const struct column environment_columns[] = {
	COLUMN(struct environment, id, "ID", 0),
	COLUMN(struct environment, name, "NAME", 0),
	COLUMN(struct environment, live, "LIVE", 0),
	COLUMN(struct environment, commit_hash, "COMMIT", COLUMN_SHORT),
	COLUMN(struct environment, finished_at, "SINCE", 0),
	COLUMN(struct environment, url, "URL", 0),
	COLUMN(struct environment, lock, "LOCKED", COLUMN_CUT),
	COLUMN_END,
};

struct runner {
	const char *name;
	const char *labels;
	bool online;
	const char *sick_reason;
	const char *running;
	const char *slots;
	const char *version;
	struct when seen_at;
};
#define R(m, ...) JSON_PATH(struct runner, m, __VA_ARGS__)
static const struct json_path runner_paths[] = {
	R(name, "name"),
	R(labels, "labels", .joined = ""),
	R(online, "online"),
	R(running, "running"),
	R(slots, "slots"),
	R(version, "version"),
	R(seen_at, "seenAt"),
	R(sick_reason, "sickReason"),
	JSON_PATH_END,
};
static const struct column runner_columns[] = {
	COLUMN(struct runner, name, "NAME", 0),
	COLUMN(struct runner, online, "ONLINE", 0),
	COLUMN(struct runner, running, "RUNNING", 0),
	COLUMN(struct runner, slots, "SLOTS", 0),
	COLUMN(struct runner, version, "VERSION", 0),
	COLUMN(struct runner, seen_at, "SEEN", 0),
	COLUMN(struct runner, labels, "LABELS", COLUMN_CUT),
	COLUMN(struct runner, sick_reason, "SICK", COLUMN_CUT),
	COLUMN_END,
};

/* A list that is printed as it comes. */
struct view {
	const char *path; /* with a query */
	const struct json_path *paths;
	const struct column *columns;
	size_t size;
};

static const struct err *
view_print(struct client *c, const struct view *v)
{
	const struct err *e;
	struct list list;

	if (c->json)
		return client_print_all(c, v->path);
	if ((e = client_all(c, v->path, v->paths, v->size, &list)) != NULL)
		return e;
	return table_print(c, v->columns, v->size, &list);
}

const struct err *
slipway_projects(void *context, struct command_call *call)
{
	const struct view view = { "/api/projects?", project_paths,
		project_columns, sizeof(struct project) };

	(void)call;
	return view_print(context, &view);
}

/* Prints a list of what belongs to one project. */
static const struct err *
project_view(struct client *c, const char *kind, struct view v)
{
	const struct project_options *options = c->call->options;
	struct named project;
	const struct err *e;

	if ((e = find_project(c, options->project, &project)) != NULL)
		return e;
	v.path = arena_printf(c->a, "/api/%s?projectId=%lld", kind,
	    (long long)project.id);
	return view_print(c, &v);
}

const struct err *
slipway_pipelines(void *context, struct command_call *call)
{
	(void)call;
	return project_view(context, "pipelines",
	    (struct view){ .paths = pipeline_paths,
		.columns = pipeline_columns,
		.size = sizeof(struct pipeline) });
}

const struct err *
slipway_environments(void *context, struct command_call *call)
{
	(void)call;
	return project_view(context, "environments",
	    (struct view){ .paths = environment_paths,
		.columns = environment_columns,
		.size = sizeof(struct environment) });
}

const struct err *
slipway_runners(void *context, struct command_call *call)
{
	const struct view view = { "/api/runners?", runner_paths,
		runner_columns, sizeof(struct runner) };

	(void)call;
	return view_print(context, &view);
}

/* Appends "&name=value". */
static void
add_filter(struct client *c, struct buf *path, const char *name,
    const char *value)
{
	if (value != NULL)
		buf_printf(path, "&%s=%s", name, http_escape(c->a, value));
}

/* Appends the filters by project and environment. */
static const struct err *
add_places(struct client *c, struct buf *path)
{
	const struct list_options *options = c->call->options;
	struct named project, environment;
	struct list list;
	const struct err *e;

	if (options->project == NULL && options->environment == NULL)
		return NULL;
	if ((e = find_project(c, options->project, &project)) != NULL)
		return e;
	buf_printf(path, "&projectId=%lld", (long long)project.id);
	if (options->environment == NULL)
		return NULL;
	if ((e = find_environments(c, project.id, &list)) != NULL ||
	    (e = find_in(c, "environment", &list, options->environment,
		 &environment)) != NULL)
		return e;
	buf_printf(path, "&environmentId=%lld", (long long)environment.id);
	return NULL;
}

static const struct err *
list_print(struct client *c, const char *path)
{
	struct http_response r;
	struct list list;
	const struct err *e;

	if ((e = client_get(c, path, &r)) != NULL)
		return e;
	if (c->json) {
		client_print(&r);
		return NULL;
	}
	if ((e = json_pick_member(c->a, "data", deployment_paths,
		 sizeof(struct deployment), r.body, r.len, &list)) != NULL ||
	    (e = deployment_names(c, &list)) != NULL)
		return e;
	return table_print(c, list_columns, sizeof(struct deployment), &list);
}

const struct err *
slipway_list(void *context, struct command_call *call)
{
	const struct list_options *options = call->options;
	struct client *c = context;
	struct buf path;
	const struct err *e;

	buf_init(&path, 65536);
	buf_printf(&path, "/api/deployments?limit=%lld",
	    options->limit == 0 ? 20LL : (long long)options->limit);
	add_filter(c, &path, "status", options->status);
	add_filter(c, &path, "branch", options->branch);
	add_filter(c, &path, "tag", options->tag);
	if ((e = add_places(c, &path)) == NULL &&
	    (e = buf_check(&path)) == NULL)
		e = list_print(c, path.data);
	buf_release(&path);
	return e;
}

static const struct err *
status_print(struct client *c, struct deployment *d,
    const struct http_response *r)
{
	const struct list one = { .items = d, .n = 1 };
	struct list steps, waits;
	const struct err *e;

	approval_name(c, d);
	if ((e = deployment_names(c, &one)) != NULL ||
	    (e = deployment_steps(c, r, &steps)) != NULL ||
	    (e = deployment_waits(c, r, &waits)) != NULL)
		return e;
	table_print_item(c, status_columns, d);
	(void)printf(c->table ? "%-12s %s\n" : "%s\t%s\n", "address",
	    client_page(c, d->id));
	if (waits.n > 0)
		(void)printf("\n");
	if ((e = table_print(c, wait_columns, sizeof(struct deployment_wait),
		 &waits)) != NULL)
		return e;
	(void)printf("\n");
	return table_print(c, step_columns, sizeof(struct deployment_step),
	    &steps);
}

const struct err *
slipway_status(void *context, struct command_call *call)
{
	struct client *c = context;
	struct http_response r;
	struct deployment d;
	const struct err *e;
	int64_t id;

	if ((e = find_deployment(c, call->word[0], &id)) != NULL ||
	    (e = deployment_get(c, id, &d, &r)) != NULL)
		return e;
	call->status = slipway_outcome(d.status);
	if (!c->json)
		return status_print(c, &d, &r);
	client_print(&r);
	return NULL;
}
