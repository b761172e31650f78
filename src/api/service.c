/* SPDX-License-Identifier: ISC */
#include "api/board.h"
#include "api/handlers.h"
#include "api/shapes.h"
#include "core/log.h"
#include "store/figures.h"

const struct err *
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

const struct err *
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
