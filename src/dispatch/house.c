/* SPDX-License-Identifier: ISC */
/* Removes rows that are old, for all runners. */
#include "core/log.h"
#include "core/str.h"
#include "dispatch/context.h"
#include "dispatch/part.h"
#include "queue/joblog.h"
#include "queue/notice.h"
#include "queue/queue.h"
#include "queue/retention.h"
#include "queue/returned.h"
#include "queue/waiting.h"
#include "store/audit.h"
#include "store/device.h"
#include "store/hook.h"
#include "store/idempotency.h"
#include "store/lock.h"
#include "store/runner.h"
#include "store/session.h"

#define KEEP_MS 300000
#define MORE_MS 2000     /* while there is more to remove */
#define SWEEP_MS 3600000 /* between looks at all deployments */

struct house {
	int64_t at;
	bool more; /* than one turn removes */
	int64_t sweep_at;
	int64_t after; /* id of the deployment that was looked at last */
};

/* Waits for a while after an outage, when other parts have more urgent work. */
static int64_t
house_next(const struct dispatch *d, const void *state, int64_t now)
{
	const struct house *h = state;
	const int64_t calm = d->database.since +
	    d->settings.runner.lease * 1000;

	(void)now;
	if (d->database.since == 0)
		return INT64_MAX;
	return h->at < calm ? calm : h->at;
}

static const struct err *
queue_clean(struct dispatch *d, struct house *h)
{
	(void)h;
	return queue_tidy(d->db);
}

static const struct err *
waiting_clean(struct dispatch *d, struct house *h)
{
	(void)h;
	return waiting_tidy(d->db, d->a);
}

static const struct err *
returned_clean(struct dispatch *d, struct house *h)
{
	(void)h;
	return returned_tidy(d->db, d->a);
}

static const struct err *
idempotency_clean(struct dispatch *d, struct house *h)
{
	(void)h;
	return idempotency_tidy(d->db, d->a);
}

static const struct err *
hook_clean(struct dispatch *d, struct house *h)
{
	(void)h;
	return hook_tidy(d->db, d->a, d->settings.runner.delivery_days);
}

static const struct err *
runner_clean(struct dispatch *d, struct house *h)
{
	(void)h;
	return runner_tidy(d->db, d->a);
}

static const struct err *
lock_clean(struct dispatch *d, struct house *h)
{
	(void)h;
	return lock_expire(d->db, d->a, d->name);
}

static const struct err *
audit_clean(struct dispatch *d, struct house *h)
{
	(void)h;
	return audit_tidy(d->db, d->a, d->settings.runner.audit_days);
}

static const struct err *
session_clean(struct dispatch *d, struct house *h)
{
	const struct session_term term = {
		.idle = d->settings.auth.session_idle,
		.max = d->settings.auth.session_max
	};

	const struct err *e;

	(void)h;
	if ((e = session_tidy(d->db, &term)) != NULL)
		return e;
	return device_tidy(d->db);
}

static const struct err *
log_clean(struct dispatch *d, struct house *h)
{
	const struct settings_runner *s = &d->settings.runner;
	const struct err *e;
	int64_t n;

	e = joblog_prune(d->db, s->log_days, s->log_total_max, &n);
	h->more |= n == JOBLOG_PRUNED;
	return e;
}

static const struct err *
deployment_clean(struct dispatch *d, struct house *h)
{
	const int64_t days = d->settings.runner.deployment_days;
	const int64_t now = time_mono_ms();
	const struct err *e;
	int64_t n = 0;

	if (days == 0 || now < h->sweep_at)
		return NULL;
	e = retention_sweep(d->db, days, &h->after, &n);
	if (n > 0)
		log_info("%lld deployments older than %lld days were deleted",
		    (long long)n, (long long)days);
	if (h->after != 0)
		h->more = true;
	else if (e == NULL)
		h->sweep_at = now + SWEEP_MS;
	return e;
}

static const struct err *
notice_clean(struct dispatch *d, struct house *h)
{
	(void)h;
	return notice_tidy(d->db, d->a, d->settings.runner.delivery_days);
}

/* In this order; the ones after a failure wait for the next turn. */
static const struct {
	const char *what;
	const struct err *(*run)(struct dispatch *, struct house *);
} jobs[] = {
	{ "delete marks of transactions", queue_clean },
	{ "delete reasons of waiting", waiting_clean },
	{ "delete counts of returns", returned_clean },
	{ "delete idempotency keys", idempotency_clean },
	{ "delete push events", hook_clean },
	{ "delete runners", runner_clean },
	{ "expire locks", lock_clean },
	{ "delete audit entries", audit_clean },
	{ "delete sessions", session_clean },
	{ "delete logs", log_clean },
	{ "delete deployments", deployment_clean },
	{ "delete messages", notice_clean },
};

static void
house_work(struct dispatch *d, void *state, int64_t now)
{
	struct house *h = state;
	size_t i;

	if (now < house_next(d, state, now))
		return;
	h->more = false;
	for (i = 0; i < sizeof(jobs) / sizeof(jobs[0]); i++)
		if (!database_done(&d->database, jobs[i].run(d, h),
			jobs[i].what))
			break;
	h->at = now + (h->more ? MORE_MS : KEEP_MS);
}

/* The settings may name shorter times. */
static void
house_events(void *state, unsigned events)
{
	struct house *h = state;

	if ((events & EVENT_RELOAD) != 0)
		h->at = h->sweep_at = 0;
}

const struct part house_part = {
	.size = sizeof(struct house),
	.work = house_work,
	.next = house_next,
	.events = house_events,
};
