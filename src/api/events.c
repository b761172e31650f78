/* SPDX-License-Identifier: ISC */
/* Streams of events. A worker checks who may listen. */
#include "api/live.h"
#include "api/resources.h"
#include "queue/deployment.h"
#include "store/project.h"

#define TYPE "text/event-stream"

static const struct err *
api_events(struct req *rq)
{
	const int64_t id = req_int(rq, "projectId");
	const struct err *e;
	struct project p;

	if (id != 0 && (e = project_by_id(rq->db, rq->a, id, &p)) != NULL)
		return e;
	live_stream(rq, id, 0);
	return NULL;
}

static const struct err *
api_deployment_events(struct req *rq)
{
	const struct err *e;
	struct deployment d;

	if ((e = deployment_by_id(rq->db, rq->a, rq->id[0], &d)) != NULL)
		return e;
	live_stream(rq, d.project_id, d.id);
	return NULL;
}

#define STREAM_DOC                                                             \
	"Each event \"deployment\" has {id, status, version, logSize} as its " \
	"data and says that the deployment has changed: read again what you "  \
	"show. A stream begins with the deployments that are pending or "      \
	"running, or with the events after Last-Event-ID. It ends after ten "  \
	"minutes, or when the session or token ends; then connect again."

static const struct route_param event_params[] = {
	{ .name = "projectId",
	    .type = PARAM_INT,
	    .min = ID_MIN,
	    .doc = "Only deployments of this project." },
	PARAM_END,
};

static const enum err_code unknown[] = { ERR_NOTFOUND, ERR_RATE, ERR_UPSTREAM,
	ERR__MAX };

static const struct route routes[] = {
	{ .method = METHOD_GET,
	    .path = "/api/events",
	    .role = ROLE_GUEST,
	    .query = event_params,
	    .handler = api_events,
	    .operation = "streamEvents",
	    .summary = "Listen for changes of deployments",
	    .doc = STREAM_DOC,
	    .status = 200,
	    .type = TYPE,
	    .errors = unknown },
	{ .method = METHOD_GET,
	    .path = "/api/deployments/{id}/events",
	    .role = ROLE_VIEWER,
	    .handler = api_deployment_events,
	    .operation = "streamDeploymentEvents",
	    .summary = "Listen for changes of a deployment",
	    .doc = STREAM_DOC,
	    .status = 200,
	    .type = TYPE,
	    .errors = unknown + 1 },
	ROUTE_END,
};

const struct resource events_resource = {
	.tag = "events",
	.about = "Streams that say what changes.",
	.routes = routes,
};
