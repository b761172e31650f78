/* SPDX-License-Identifier: ISC */
#include <stdio.h>
#include <string.h>

#include "api/board.h"
#include "api/resources.h"
#include "api/shapes.h"
#include "core/log.h"
#include "store/figures.h"
#include "store/project.h"

#define NAMES_MAX ((size_t)2000 * 1024) /* of GET /projects */

static const struct err *
api_service_health(struct req *rq)
{
	const struct component parts[] = {
		{ .name = "api", .status = "ok" },
		{ .name = "database", .status = "ok" },
	};
	const struct health health = { .status = "ok",
		.version = SLIPWAY_VERSION,
		.components = {
		    .items = arena_alloc(rq->a, 2, sizeof(parts[0])),
		    .n = 2 } };
	const struct err *e = rq->unready;

	if (e == NULL)
		e = db_ping(rq->db);
	if (e != NULL) {
		log_err(e, "health");
		return err_tell(ERR_UNAVAILABLE, "Down: database (%s).",
		    e->code == ERR_CONFIG ?
			"its tables are not those of this version" :
			"it does not answer");
	}
	(void)memcpy(health.components.items, parts, sizeof(parts));
	answer_item(rq, &health_shape, &health, 0);
	return NULL;
}

static void
metric(struct buf *b, const char *name, const char *type, const char *help)
{
	buf_printf(b, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void
requests_write(struct buf *b, struct board *board)
{
	int class;

	metric(b, "slipway_requests_total", "counter",
	    "Requests served, by class of status.");
	for (class = 2; class < 6; class ++)
		buf_printf(b, "slipway_requests_total{class=\"%dxx\"} %lld\n",
		    class, (long long)atomic_load(&board->requests[class]));
	metric(b, "slipway_request_seconds_total", "counter",
	    "Time spent in requests.");
	buf_printf(b, "slipway_request_seconds_total %.3f\n",
	    (double)atomic_load(&board->busy_ms) / 1000);
	metric(b, "slipway_worker_restarts_total", "counter",
	    "Workers that died and were replaced.");
	buf_printf(b, "slipway_worker_restarts_total %lld\n",
	    (long long)atomic_load(&board->restarts));
}

static const struct err *
api_service_metrics(struct req *rq)
{
	struct figures figures = { 0 };
	const struct err *e;
	struct buf b;

	if (!rq->settings->api.metrics)
		return err_tell(ERR_NOTFOUND, "Metrics are off (api.metrics).");
	e = rq->unready;
	if (e == NULL)
		e = figures_read(rq->db, rq->a, &figures);
	buf_init(&b, (size_t)16 * 1024);
	requests_write(&b, rq->board);
	metric(&b, "slipway_database_up", "gauge",
	    "Whether the database answers.");
	buf_printf(&b, "slipway_database_up %d\n", e == NULL ? 1 : 0);
	if (e == NULL) {
		metric(&b, "slipway_deployments", "gauge",
		    "Deployments that are not finished, by status.");
		buf_printf(&b,
		    "slipway_deployments{status=\"pending\"} %lld\n"
		    "slipway_deployments{status=\"running\"} %lld\n",
		    (long long)figures.pending, (long long)figures.running);
		metric(&b, "slipway_queue_oldest_seconds", "gauge",
		    "How long the oldest pending deployment waits.");
		buf_printf(&b, "slipway_queue_oldest_seconds %lld\n",
		    (long long)figures.oldest_seconds);
	}
	answer_bytes(rq, "text/plain; version=0.0.4; charset=utf-8", b.data,
	    b.len);
	buf_release(&b);
	return NULL;
}

static const struct err *
too_many_names(void)
{
	return err_tell(ERR_BAD_REQUEST,
	    "There are too many projects for one answer; /api/projects has "
	    "pages.");
}

/* Each is written as it is made, until there are too many: a list of them all
 * for the outside has no room beside the rows. */
static const struct err *
api_project_names(struct req *rq)
{
	struct buf *body = &rq->answer.body;
	const struct project_ref *refs;
	struct project_name one;
	const struct err *e;
	struct list list;
	char id[32];
	size_t i;

	e = project_refs(rq->db, rq->a, &list);
	if (e != NULL && e->code == ERR_TOO_LARGE)
		return too_many_names();
	if (e != NULL)
		return e;
	refs = list.items;
	for (i = 0; i < list.n && body->len < NAMES_MAX; i++) {
		(void)snprintf(id, sizeof(id), "%lld", (long long)refs[i].id);
		one = (struct project_name){ .id = id, .name = refs[i].name };
		buf_putc(body, i == 0 ? '[' : ',');
		json_write(body, &project_name_shape, &one, 0);
	}
	if (i < list.n)
		return too_many_names();
	buf_puts(body, list.n == 0 ? "[]" : "]");
	return NULL;
}

static const struct route routes[] = {
	{ .method = METHOD_GET,
	    .path = "/health",
	    .handler = api_service_health,
	    .operation = "getHealth",
	    .summary = "Whether the service works",
	    .out = &health_shape,
	    .status = 200 },
	{ .method = METHOD_GET,
	    .path = "/api/health",
	    .handler = api_service_health,
	    .operation = "getApiHealth",
	    .summary = "Whether the service works",
	    .out = &health_shape,
	    .status = 200 },
	{ .method = METHOD_GET,
	    .path = "/projects",
	    .role = ROLE_VIEWER,
	    .handler = api_project_names,
	    .operation = "listProjectNames",
	    .summary = "List all projects' numbers and names",
	    .out = &project_name_shape,
	    .list = LIST_BARE,
	    .status = 200 },
	{ .method = METHOD_GET,
	    .path = "/api/metrics",
	    .handler = api_service_metrics,
	    .operation = "getMetrics",
	    .summary = "Figures for Prometheus",
	    .status = 200,
	    .type = "text/plain; version=0.0.4; charset=utf-8" },
	ROUTE_END,
};

const struct resource service_resource = {
	.tag = "service",
	.about = "The service itself.",
	.routes = routes,
};
