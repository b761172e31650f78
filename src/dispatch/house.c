/* SPDX-License-Identifier: ISC */
/* Removes rows that are old, for all runners. */
#include "dispatch/context.h"
#include "dispatch/part.h"
#include "store/audit.h"
#include "store/hook.h"
#include "store/idempotency.h"
#include "store/joblog.h"
#include "store/lock.h"
#include "store/notice.h"
#include "store/queue.h"
#include "store/runner.h"
#include "store/session.h"
#include "store/waiting.h"

#define KEEP_MS 300000

struct house {
	int64_t at;
};

/* Not in the first time after an outage, when others have more urgent work. */
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

static void
tidy(struct dispatch *d)
{
	const struct settings_runner *s = &d->settings.runner;
	const struct session_term term = {
		.idle = d->settings.auth.session_idle,
		.max = d->settings.auth.session_max
	};
	struct database *b = &d->database;
	int64_t n;

	if (database_done(b, queue_tidy(d->db), "tidy") &&
	    database_done(b, waiting_tidy(d->db, d->a), "tidy") &&
	    database_done(b, idempotency_tidy(d->db, d->a), "tidy") &&
	    database_done(b, hook_tidy(d->db), "tidy") &&
	    database_done(b, notice_tidy(d->db, d->a), "tidy") &&
	    database_done(b, runner_tidy(d->db, d->a), "tidy") &&
	    database_done(b, lock_expire(d->db, d->a, d->name), "tidy") &&
	    database_done(b, audit_tidy(d->db, d->a, s->audit_days), "tidy") &&
	    database_done(b, session_tidy(d->db, &term), "tidy"))
		(void)database_done(b,
		    joblog_prune(d->db, s->log_days, s->log_total_max, &n),
		    "prune");
}

static void
house_work(struct dispatch *d, void *state, int64_t now)
{
	struct house *h = state;

	if (now < house_next(d, state, now))
		return;
	h->at = now + KEEP_MS;
	tidy(d);
}

const struct part house_part = {
	.size = sizeof(struct house),
	.work = house_work,
	.next = house_next,
};
