/* SPDX-License-Identifier: ISC */
#include "cli/deployment.h"

#include "cli/find.h"
#include "core/str.h"

#define D(m, ...) JSON_PATH(struct deployment, m, __VA_ARGS__)
const struct json_path deployment_paths[] = {
	D(id, "id", .must = true),
	D(project_id, "projectId", .must = true),
	D(environment_id, "environmentId"),
	D(created_by, "createdBy"),
	D(branch, "branch"),
	D(tag, "tag"),
	D(commit_hash, "commitHash"),
	D(commit_message, "commitMessage"),
	D(env_vars_sent, "envVarsSent", .joined = ""),
	D(status, "status", .must = true),
	D(reason, "reason"),
	D(detail, "detail"),
	D(warnings, "warnings"),
	D(trigger, "trigger"),
	D(approval, "approval"),
	D(approval_by, "approvalBy"),
	D(approval_comment, "approvalComment"),
	D(runner, "runner"),
	D(created_at, "createdAt"),
	D(started_at, "startedAt"),
	D(finished_at, "finishedAt"),
	D(log_size, "logSize"),
	JSON_PATH_END,
};

#define S(m, p) JSON_PATH(struct deployment_step, m, p)
const struct json_path deployment_step_paths[] = {
	S(position, "position"),
	S(name, "name"),
	S(status, "status"),
	S(started_at, "startedAt"),
	S(finished_at, "finishedAt"),
	S(exit_code, "exitCode"),
	S(log_offset, "logOffset"),
	S(log_length, "logLength"),
	JSON_PATH_END,
};

#define W(m, p) JSON_PATH(struct deployment_wait, m, p)
const struct json_path deployment_wait_paths[] = {
	W(reason, "reason"),
	W(detail, "detail"),
	JSON_PATH_END,
};

const struct err *
deployment_get(struct client *c, int64_t id, struct deployment *out,
    struct http_response *r)
{
	*out = (struct deployment){ .id = 0 };
	return client_object(c,
	    arena_printf(c->a, "/api/deployments/%lld", (long long)id),
	    deployment_paths, out, r);
}

const struct err *
deployment_steps(struct client *c, const struct http_response *r,
    struct list *out)
{
	return json_pick_member(c->a, "steps", deployment_step_paths,
	    sizeof(struct deployment_step), r->body, r->len, out);
}

const struct err *
deployment_waits(struct client *c, const struct http_response *r,
    struct list *out)
{
	return json_pick_member(c->a, "waitingFor", deployment_wait_paths,
	    sizeof(struct deployment_wait), r->body, r->len, out);
}

const struct err *
deployment_names(struct client *c, const struct list *deployments)
{
	struct deployment *d = deployments->items;
	struct list projects, environments = { .items = NULL };
	const struct err *e;
	bool some = false;
	size_t i;

	for (i = 0; i < deployments->n; i++)
		some = some || d[i].environment_id != 0;
	if (deployments->n == 0)
		return NULL;
	if ((e = find_projects(c, &projects)) != NULL ||
	    (some && (e = find_environments(c, 0, &environments)) != NULL))
		return e;
	for (i = 0; i < deployments->n; i++) {
		d[i].project = find_name(&projects, d[i].project_id);
		d[i].environment = find_name(&environments,
		    d[i].environment_id);
	}
	return NULL;
}
