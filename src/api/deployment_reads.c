/* SPDX-License-Identifier: ISC */
/* Reads deployments, and lets clients wait for their changes. */
#include "api/live.h"
#include "api/resources.h"
#include "core/state.h"
#include "core/str.h"
#include "queue/deployment_seen.h"

/* The digits of a commit in lower case, as git prints them. */
static const struct err *
commit_read(struct req *rq, const char **out)
{
	const char *sent = req_str(rq, "commitHash");
	char *hash, *c;

	*out = NULL;
	if (sent == NULL)
		return NULL;
	if (!str_matches(sent, "[0-9a-fA-F]+"))
		return err_public(ERR_BAD_REQUEST,
		    "The query parameter \"commitHash\" must consist of "
		    "hexadecimal digits.");
	*out = hash = arena_strdup(rq->a, sent);
	for (c = hash; *c != '\0'; c++)
		if (*c >= 'A' && *c <= 'F')
			*c = (char)(*c - 'A' + 'a');
	return NULL;
}

/* Whether the query selects a project, which the caller may then see. */
static bool
is_of_project(const struct deployment_filter *filter)
{
	return filter->project_id != 0 || filter->pipeline_id != 0 ||
	    filter->environment_id != 0;
}

static const struct err *
api_deployment_list(struct req *rq)
{
	struct deployment_filter filter = {
		.project_id = req_int(rq, "projectId"),
		.pipeline_id = req_int(rq, "pipelineId"),
		.environment_id = req_int(rq, "environmentId"),
		.status = req_str(rq, "status"),
		.branch = req_str(rq, "branch"),
		.tag = req_str(rq, "tag"),
		.created_by = req_int(rq, "createdBy"),
		.trigger = req_str(rq, "trigger"),
		.before = req_int(rq, "cursor"),
		.limit = req_int(rq, "limit"),
	};
	const struct live_wait wait = { .project_id = filter.project_id,
		.from = -1,
		.since = time_mono_ms() };
	const struct err *e;
	struct list list;
	int64_t next;

	if ((e = commit_read(rq, &filter.commit_hash)) != NULL)
		return e;
	if (rq->member != 0 && !is_of_project(&filter))
		e = deployment_page_seen(rq->db, rq->a, rq->member, &filter,
		    &list, &next);
	else
		e = deployment_page(rq->db, rq->a, &filter, &list, &next);
	if (e != NULL)
		return e;
	answer_cursor(rq, &deployment_shape, &list, filter.limit, next);
	answer_tag(rq);
	live_wait_change(rq, &wait);
	return NULL;
}

/* A pending deployment also changes when an earlier one moves in the queue. */
static const struct err *
api_deployment_show(struct req *rq)
{
	struct live_wait wait = { .deployment_id = rq->id[0],
		.from = -1,
		.since = time_mono_ms() };
	const struct err *e;
	struct deployment d;

	if ((e = deployment_by_id(rq->db, rq->a, rq->id[0], &d)) != NULL)
		return e;
	answer_item(rq, &deployment_shape, &d, 0);
	if (str_eq(d.status, "pending"))
		wait.project_id = d.project_id;
	live_wait_change(rq, &wait);
	return NULL;
}

static const struct route_param deployment_params[] = {
	ROUTE_CURSOR,
	{ .name = "projectId",
	    .type = PARAM_INT,
	    .min = ID_MIN,
	    .doc = "Only deployments of this project." },
	{ .name = "pipelineId",
	    .type = PARAM_INT,
	    .min = ID_MIN,
	    .doc = "Only deployments of this pipeline." },
	{ .name = "environmentId",
	    .type = PARAM_INT,
	    .min = ID_MIN,
	    .doc = "Only deployments to this environment." },
	{ .name = "status",
	    .type = PARAM_STR,
	    .values = state_deployments,
	    .named = "DeploymentStatus",
	    .doc = "Only deployments with this status." },
	{ .name = "branch",
	    .type = PARAM_STR,
	    .max = 255,
	    .doc = "Only deployments of this branch." },
	{ .name = "tag",
	    .type = PARAM_STR,
	    .max = 255,
	    .doc = "Only deployments of this tag." },
	{ .name = "commitHash",
	    .type = PARAM_STR,
	    .min = 7,
	    .max = 64,
	    .doc = "Only deployments of this commit: its hash, or at least 7 "
		   "digits at its beginning." },
	{ .name = "createdBy",
	    .type = PARAM_INT,
	    .min = ID_MIN,
	    .doc = "Only deployments that this user started." },
	{ .name = "trigger",
	    .type = PARAM_STR,
	    .values = deployment_triggers,
	    .named = "DeploymentTrigger",
	    .doc = "Only deployments that were started in this way." },
	LIVE_WAIT_PARAM,
	PARAM_END,
};
static const struct route_param show_params[] = { LIVE_WAIT_PARAM, PARAM_END };

#define WAIT_DOC                                                               \
	"With \"wait\" and If-None-Match, the response is delayed until "      \
	"something has changed; after that time it is 304. A 304 can come "    \
	"earlier, if something has changed that the response does not show."

static const struct route routes[] = {
	{ .method = METHOD_GET,
	    .path = "/api/deployments",
	    .role = ROLE_GUEST,
	    .query = deployment_params,
	    .handler = api_deployment_list,
	    .operation = "listDeployments",
	    .summary = "List deployments, newest first",
	    .doc = WAIT_DOC,
	    .flags = ROUTE_TAGGED,
	    .out = &deployment_shape,
	    .list = LIST_KEYS,
	    .status = 200 },
	{ .method = METHOD_GET,
	    .path = "/api/deployments/{id}",
	    .role = ROLE_VIEWER,
	    .query = show_params,
	    .handler = api_deployment_show,
	    .operation = "getDeployment",
	    .summary = "Get a deployment with the results of its steps",
	    .doc = WAIT_DOC,
	    .out = &deployment_shape,
	    .status = 200 },
	ROUTE_END,
};

const struct resource deployment_reads_resource = {
	.tag = "deployments",
	.about = "Runs of pipelines: pending, running and finished.",
	.routes = routes,
};
