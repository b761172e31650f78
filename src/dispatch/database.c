/* SPDX-License-Identifier: ISC */
#include "dispatch/database.h"

#include "core/log.h"
#include "core/str.h"
#include "dispatch/backoff.h"
#include "queue/stores.h"

#define PAUSE_MIN 100 /* milliseconds */
#define PAUSE_MAX 2000
#define CALM_MS 3000
#define LOG_MIN INT64_C(60000)
#define LOG_MAX INT64_C(3600000)

void
database_init(struct database *b)
{
	*b = (struct database){ .lost = time_mono_ms() };
}

bool
database_is_ready(const struct database *b)
{
	return time_mono_ms() >= b->at;
}

bool
database_is_usable(const struct database *b)
{
	return b->is_checked && database_is_ready(b);
}

/* At its start, then at growing intervals: an administrator wants to know why
 * an outage lasts. */
static void
outage_log(struct database *b, const struct err *e, const char *what,
    int64_t now)
{
	if (b->pause != 0 && now < b->log_at)
		return;
	log_err(e, what);
	if (b->pause == 0)
		b->log_pause = 0;
	b->log_pause = backoff(b->log_pause, LOG_MIN, LOG_MAX);
	b->log_at = now + b->log_pause;
}

static void
database_succeeded(struct database *b, const char *what, int64_t now)
{
	log_fault_over(what);
	if (b->since == 0)
		b->since = now;
	if (b->pause != 0 && now - b->since >= CALM_MS) {
		log_info("the database is back");
		b->pause = 0;
	}
}

bool
database_done(struct database *b, const struct err *e, const char *what)
{
	const int64_t now = time_mono_ms();

	if (e == NULL) {
		database_succeeded(b, what, now);
		return true;
	}
	if (e->code != ERR_UNAVAILABLE && e->code != ERR_CONFIG) {
		log_fault(e, what);
		return false;
	}
	outage_log(b, e, what, now);
	if (b->since != 0)
		b->lost = now;
	b->since = 0;
	b->is_doubtful = true;
	b->pause = backoff(b->pause, PAUSE_MIN, PAUSE_MAX);
	b->at = now + b->pause;
	return false;
}

/* A daemon lives through a server that rejects access: that may end, and it
 * has to renew leases then. */
const struct err *
database_check(struct database *b, struct db *db, bool once)
{
	const struct err *e;

	if (b->is_checked || !database_is_ready(b))
		return NULL;
	e = store_check(db);
	if (e != NULL && e->code != ERR_UNAVAILABLE && (e->sys == 0 || once))
		return e;
	b->is_checked = database_done(b, e, "database");
	if (!b->is_checked && database_is_ready(b))
		b->at = time_mono_ms() + PAUSE_MAX;
	return NULL;
}
