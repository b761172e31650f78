/* SPDX-License-Identifier: ISC */
/*
 * Metrics for Prometheus.  Those of requests and hooks count since this service
 * was started on this host; those from the database are of all hosts.
 */
#include <string.h>

#include "api/resources.h"
#include "core/str.h"
#include "queue/total.h"
#include "store/figures.h"
#include "store/notifier.h"
#include "store/runner.h"
#include "web/scoreboard.h"

#define TEXT_MAX ((size_t)1 << 20)
#define RUNNERS_MAX 1000
#define BOUNDS_MAX 16

/* clang-format off */
#define BOUND_MS(ms, seconds) ms,
#define BOUND_TEXT(ms, seconds) seconds,
/* clang-format on */
_Static_assert(SCOREBOARD_RANGES <= BOUNDS_MAX + 1, "see struct histogram");

static const char *const request_bounds[] = { SCOREBOARD_BOUNDS(BOUND_TEXT)
	    NULL };
static const char *const total_bounds[] = { TOTAL_BOUNDS(BOUND_TEXT) NULL };
static const int64_t total_ms[] = { TOTAL_BOUNDS(BOUND_MS) };
_Static_assert(sizeof(total_ms) / sizeof(total_ms[0]) <= BOUNDS_MAX,
    "see struct histogram");

struct histogram {
	int64_t count[BOUNDS_MAX + 1]; /* one more than bounds */
	int64_t sum_ms;
};

/* Figures from the database. */
struct totals {
	struct figures figures;
	struct list deployments;
	struct list notices;
	struct list runners;
};

/* The same of all deployments. */
struct ended {
	int64_t by_reason[REASON__MAX];
	struct histogram took;
	struct histogram waited;
	int64_t log_bytes;
};

static void
family(struct buf *b, const char *name, const char *type, const char *help)
{
	buf_printf(b, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void
single(struct buf *b, const char *name, const char *type, const char *help,
    int64_t value)
{
	family(b, name, type, help);
	buf_printf(b, "%s %lld\n", name, (long long)value);
}

/* The text in a label, escaped. */
static const char *
label(struct arena *a, const char *text)
{
	char *out = arena_alloc(a, 2 * strlen(text) + 1, 1), *to = out;

	for (; *text != '\0'; text++) {
		if (strchr("\\\"\n", *text) != NULL)
			*to++ = '\\';
		*to++ = *text == '\n' ? 'n' : *text;
	}
	*to = '\0';
	return out;
}

static void
histogram_write(struct buf *b, const char *name, const char *help,
    const char *const *bounds, const struct histogram *h)
{
	int64_t n = 0;
	size_t i;

	family(b, name, "histogram", help);
	for (i = 0; bounds[i] != NULL; i++) {
		n += h->count[i];
		buf_printf(b, "%s_bucket{le=\"%s\"} %lld\n", name, bounds[i],
		    (long long)n);
	}
	n += h->count[i];
	buf_printf(b,
	    "%s_bucket{le=\"+Inf\"} %lld\n%s_sum %.3f\n"
	    "%s_count %lld\n",
	    name, (long long)n, name, (double)h->sum_ms / 1000, name,
	    (long long)n);
}

static void
requests_write(struct buf *b, struct scoreboard *board)
{
	struct histogram took = { .sum_ms = atomic_load(&board->busy_ms) };
	int class, i;

	family(b, "slipway_requests_total", "counter",
	    "Requests served, by class of status.");
	for (class = 2; class < 6; class ++)
		buf_printf(b, "slipway_requests_total{class=\"%dxx\"} %lld\n",
		    class, (long long)atomic_load(&board->requests[class]));
	for (i = 0; i < SCOREBOARD_RANGES; i++)
		took.count[i] = atomic_load(&board->took[i]);
	histogram_write(b, "slipway_request_duration_seconds",
	    "Time in which requests were served.", request_bounds, &took);
	single(b, "slipway_worker_restarts_total", "counter",
	    "Workers that died and were replaced.",
	    atomic_load(&board->restarts));
}

static void
hooks_write(struct buf *b, struct scoreboard *board)
{
	static const char *const results[SCOREBOARD_HOOK__MAX] = {
		[SCOREBOARD_HOOK_ACCEPTED] = "accepted",
		[SCOREBOARD_HOOK_IGNORED] = "ignored",
		[SCOREBOARD_HOOK_REJECTED] = "rejected",
		[SCOREBOARD_HOOK_FAILED] = "failed",
	};
	int i;

	family(b, "slipway_hook_deliveries_total", "counter",
	    "Events from Git servers, by result.");
	for (i = 0; i < SCOREBOARD_HOOK__MAX; i++)
		buf_printf(b,
		    "slipway_hook_deliveries_total{result=\"%s\"} %lld\n",
		    results[i], (long long)atomic_load(&board->hooks[i]));
}

static void
queue_write(struct buf *b, const struct figures *figures)
{
	family(b, "slipway_deployments", "gauge",
	    "Unfinished deployments, by status.");
	buf_printf(b,
	    "slipway_deployments{status=\"pending\"} %lld\n"
	    "slipway_deployments{status=\"running\"} %lld\n",
	    (long long)figures->pending, (long long)figures->running);
	single(b, "slipway_queue_oldest_seconds", "gauge",
	    "Waiting time of the oldest pending deployment that does not wait "
	    "for approval.",
	    figures->oldest_seconds);
}

/* Adds deployments to the range with this bound. */
static void
histogram_add(struct histogram *h, int64_t bound, int64_t n, int64_t sum_ms)
{
	const size_t last = sizeof(total_ms) / sizeof(total_ms[0]);
	size_t i;

	for (i = 0; i < last && total_ms[i] < bound; i++)
		;
	h->count[i] += n;
	h->sum_ms += sum_ms;
}

static void
ended_sum(const struct list *list, struct ended *out)
{
	const struct deployment_total *t = list->items;
	enum reason reason;
	size_t i;

	*out = (struct ended){ .log_bytes = 0 };
	for (i = 0; i < list->n; i++) {
		reason = t[i].reason[0] == '\0' ? REASON_NONE :
						  state_reason(t[i].reason);
		if (reason < REASON__MAX)
			out->by_reason[reason] += t[i].n;
		out->log_bytes += t[i].log_bytes;
		if (t[i].took == 0)
			continue;
		histogram_add(&out->took, t[i].took, t[i].n, t[i].took_ms);
		histogram_add(&out->waited, t[i].waited, t[i].n,
		    t[i].waited_ms);
	}
}

static void
ended_write(struct buf *b, const struct list *list)
{
	struct ended ended;
	enum reason r;

	ended_sum(list, &ended);
	family(b, "slipway_deployments_finished_total", "counter",
	    "Deployments that ended, by status and reason.");
	for (r = 0; r < REASON__MAX; r++)
		buf_printf(b,
		    "slipway_deployments_finished_total{status=\"%s\","
		    "reason=\"%s\"} %lld\n",
		    state_kinds[reason_kinds[r].ends].name,
		    r == REASON_NONE ? "" : reason_kinds[r].name,
		    (long long)ended.by_reason[r]);
	histogram_write(b, "slipway_deployment_duration_seconds",
	    "Time from the start to the end of deployments that ended.",
	    total_bounds, &ended.took);
	histogram_write(b, "slipway_queue_wait_seconds",
	    "Time from the creation or approval to the start of deployments "
	    "that ended.",
	    total_bounds, &ended.waited);
	single(b, "slipway_log_bytes_total", "counter",
	    "Bytes in the logs of deployments that ended.", ended.log_bytes);
}

static int64_t
notices_find(const struct list *list, const char *kind, const char *result)
{
	const struct notice_total *t = list->items;
	size_t i;

	for (i = 0; i < list->n; i++)
		if (str_eq(t[i].kind, kind) && str_eq(t[i].result, result))
			return t[i].n;
	return 0;
}

static void
notices_write(struct buf *b, const struct list *list)
{
	static const char *const kinds[] = { NOTIFIER_MAIL, NOTIFIER_TEXT,
		NOTIFIER_WEBHOOK, NULL };
	int kind, result;

	family(b, "slipway_notifications_total", "counter",
	    "Attempts to deliver messages of notifiers, by kind and result.");
	for (kind = 0; kinds[kind] != NULL; kind++)
		for (result = 0; result < NOTICE_RESULT__MAX; result++)
			buf_printf(b,
			    "slipway_notifications_total{kind=\"%s\","
			    "result=\"%s\"} %lld\n",
			    kinds[kind], notice_results[result],
			    (long long)notices_find(list, kinds[kind],
				notice_results[result]));
}

static void
runners_write(struct buf *b, struct arena *a, const struct list *list)
{
	const struct runner *r = list->items;
	const char *name;
	size_t i;

	family(b, "slipway_runner_slots", "gauge",
	    "Slots of runners that are online, by state.");
	for (i = 0; i < list->n; i++) {
		if (!r[i].online)
			continue;
		name = label(a, r[i].name);
		buf_printf(b,
		    "slipway_runner_slots{runner=\"%s\",state=\"busy\"} %lld\n"
		    "slipway_runner_slots{runner=\"%s\",state=\"free\"} %lld\n",
		    name, (long long)r[i].running, name,
		    r[i].slots > r[i].running ?
			(long long)(r[i].slots - r[i].running) :
			0);
	}
	family(b, "slipway_runner_sick", "gauge",
	    "1 if a runner that is online cannot start deployments.");
	for (i = 0; i < list->n; i++)
		if (r[i].online)
			buf_printf(b, "slipway_runner_sick{runner=\"%s\"} %d\n",
			    label(a, r[i].name), r[i].sick);
	family(b, "slipway_runner_last_seen_timestamp_seconds", "gauge",
	    "Time of the last report of each runner.");
	for (i = 0; i < list->n; i++)
		buf_printf(b,
		    "slipway_runner_last_seen_timestamp_seconds"
		    "{runner=\"%s\"} %.3f\n",
		    label(a, r[i].name), (double)r[i].seen_at.ms / 1000);
}

static const struct err *
totals_read(struct req *rq, struct totals *out)
{
	struct page page = { .page = 1, .limit = RUNNERS_MAX };
	const struct err *e = rq->unready;

	if (e == NULL)
		e = figures_read(rq->db, rq->a, &out->figures);
	if (e == NULL)
		e = total_deployments(rq->db, rq->a, &out->deployments);
	if (e == NULL)
		e = total_notices(rq->db, rq->a, &out->notices);
	if (e == NULL)
		e = runner_page(rq->db, rq->a, &page, &out->runners);
	return e;
}

static const struct err *
api_metrics(struct req *rq)
{
	struct totals totals = { .deployments.n = 0 };
	const struct err *e;
	struct buf b;

	if (!rq->settings->api.metrics)
		return err_public(ERR_NOTFOUND,
		    "Metrics are disabled (api.metrics).");
	e = totals_read(rq, &totals);
	buf_init(&b, TEXT_MAX);
	family(&b, "slipway_build_info", "gauge",
	    "Version of the service; the value is 1.");
	buf_puts(&b, "slipway_build_info{version=\"" SLIPWAY_VERSION "\"} 1\n");
	requests_write(&b, rq->scoreboard);
	hooks_write(&b, rq->scoreboard);
	single(&b, "slipway_database_up", "gauge",
	    "Whether the database responds.", e == NULL ? 1 : 0);
	if (e == NULL)
		single(&b, "slipway_database_writable", "gauge",
		    "Whether the database accepts writes.",
		    writable_check(&rq->scoreboard->writable, rq->db) == NULL);
	if (e == NULL) {
		queue_write(&b, &totals.figures);
		ended_write(&b, &totals.deployments);
		notices_write(&b, &totals.notices);
		runners_write(&b, rq->a, &totals.runners);
	}
	if ((e = buf_check(&b)) == NULL)
		answer_bytes(rq, "text/plain; version=0.0.4; charset=utf-8",
		    b.data, b.len);
	buf_release(&b);
	return e;
}

static const struct route routes[] = {
	{ .method = METHOD_GET,
	    .path = "/api/metrics",
	    .handler = api_metrics,
	    .operation = "getMetrics",
	    .summary = "Metrics for Prometheus",
	    .status = 200,
	    .type = "text/plain; version=0.0.4; charset=utf-8" },
	ROUTE_END,
};

const struct resource metrics_resource = {
	.tag = "service",
	.routes = routes,
};
