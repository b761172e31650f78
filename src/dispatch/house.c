/* SPDX-License-Identifier: ISC */
#include "core/log.h"
#include "core/str.h"
#include "dispatch/dispatch.h"
#include "store/hook.h"
#include "store/idempotency.h"
#include "store/joblog.h"
#include "store/lease.h"
#include "store/session.h"
#include "store/waiting.h"

#define KEEP_MS 300000 /* between tidyings of old rows */
#define TRY_MS 1000    /* between tries of what a renewal needs */
/* For so long tries have to succeed before a lease is held against its holder,
 * who may have been refused until then: all pauses of such a one are shorter. */
#define OPEN_MS 5000
#define LEASES "leases of other runners"

/* Over a new connection: an old one may be served where others are refused. */
static const struct err *
try_apart(struct dispatch *d)
{
	const struct err *e;
	struct db *db;

	if ((e = db_open(&d->settings, DB_RUNNER, &db)) != NULL)
		return e;
	e = lease_try(db);
	db_close(db);
	return e == NULL ?
	    NULL :
	    err_wrap(e, "none is given up while the database refuses");
}

/* Tries what a renewal needs; whether it was possible for long enough. */
static bool
is_open_to_all(struct dispatch *d, int64_t now)
{
	const int64_t lease = d->settings.runner.lease * 1000;
	const struct err *e = try_apart(d);

	if (e != NULL) {
		log_fault(e, LEASES);
		d->open_since = 0;
		d->refused_at = now;
		return false;
	}
	log_fault_over(LEASES);
	if (d->open_since == 0)
		d->open_since = now;
	return now - d->open_since >= OPEN_MS &&
	    (d->refused_at == 0 || now - d->refused_at >= lease);
}

/* When the first lease is about to run out it is tried whether it could be
 * renewed, so that it is known when it has. */
static void
expire(struct dispatch *d, int64_t now)
{
	const int64_t lease = d->settings.runner.lease * 1000;
	const int64_t early = lease / 3 < OPEN_MS ? lease / 3 : OPEN_MS;
	int64_t left, n;
	const struct err *e;

	if (now < d->expire_at)
		return;
	d->expire_at = now + lease / 3;
	e = lease_left(d->db, d->a, &left);
	if (e != NULL && e->code == ERR_NOTFOUND) {
		e = NULL;
		left = INT64_MAX;
	}
	if (!database_done(&d->database, e, "expire"))
		return;
	if (left > early) {
		log_fault_over(LEASES);
		d->open_since = 0;
		if (left - early < lease / 3)
			d->expire_at = now + left - early;
		return;
	}
	d->expire_at = now + TRY_MS;
	if (!is_open_to_all(d, now) || left >= 0 ||
	    !database_done(&d->database, queue_expire(d->db, &n), "expire") ||
	    n == 0)
		return;
	log_warn("%lld deployments were lost by their runners", (long long)n);
	teller_wake(d);
	d->claim = true;
}

/* Others' leases only after a full lease in which the database was there: they
 * had the time to renew theirs. */
void
house_keep(struct dispatch *d, int64_t now)
{
	const struct settings_runner *s = &d->settings.runner;
	const struct session_term term = {
		.idle = d->settings.auth.session_idle,
		.max = d->settings.auth.session_max
	};
	int64_t n;

	if (d->database.since == 0 ||
	    now - d->database.since < s->lease * 1000 ||
	    !database_is_ready(&d->database)) {
		d->open_since = 0;
		return;
	}
	expire(d, now);
	if (now < d->keep_at || !database_is_ready(&d->database))
		return;
	d->keep_at = now + KEEP_MS;
	claim_namesakes(d);
	if (database_done(&d->database, queue_tidy(d->db), "tidy") &&
	    database_done(&d->database, waiting_tidy(d->db, d->a), "tidy") &&
	    database_done(&d->database, idempotency_tidy(d->db, d->a),
		"tidy") &&
	    database_done(&d->database, hook_tidy(d->db), "tidy") &&
	    database_done(&d->database, session_tidy(d->db, &term), "tidy"))
		(void)database_done(&d->database,
		    joblog_prune(d->db, s->log_days, s->log_total_max, &n),
		    "prune");
}
