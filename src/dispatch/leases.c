/* SPDX-License-Identifier: ISC */
/*
 * Ends deployments of other runners whose leases have expired.
 *
 * A lease counts against its holder only if the holder could have renewed it:
 * the database must have responded for a full lease, and accepted writes for
 * some seconds.
 */
#include "core/log.h"
#include "core/str.h"
#include "dispatch/context.h"
#include "dispatch/part.h"
#include "store/lease.h"

#define TRY_MS 1000 /* between tries of a renewal */
/* Tries must succeed for so long.  A holder that was rejected until then tries
 * again sooner: all its pauses are shorter. */
#define OPEN_MS 5000
#define LEASES "leases of other runners"

/* Times are monotonic milliseconds, 0 = never. */
struct leases {
	int64_t at;
	int64_t since;      /* of the database; it differs after an outage */
	int64_t open_since; /* tries succeed */
	int64_t refused_at; /* the last one that failed */
};

static int64_t
lease_ms(const struct dispatch *d)
{
	return d->settings.runner.lease * 1000;
}

/* Over a new connection: the server may serve an old one, and reject others. */
static const struct err *
try_apart(const struct dispatch *d)
{
	const struct err *e;
	struct db *db;

	if ((e = db_open(&d->settings, 0, &db)) != NULL)
		return e;
	e = lease_try(db);
	db_close(db);
	return e == NULL ?
	    NULL :
	    err_wrap(e, "none expires while the database rejects renewals");
}

/* Whether every holder could have renewed its lease. */
static bool
is_open(const struct dispatch *d, struct leases *l, int64_t now)
{
	const struct err *e = try_apart(d);

	if (e != NULL) {
		log_fault(e, LEASES);
		l->open_since = 0;
		l->refused_at = now;
		return false;
	}
	log_fault_over(LEASES);
	if (l->open_since == 0)
		l->open_since = now;
	return now - l->open_since >= OPEN_MS &&
	    (l->refused_at == 0 || now - l->refused_at >= lease_ms(d));
}

static void
leases_expire(struct dispatch *d, struct leases *l, int64_t now)
{
	int64_t n;

	if (!is_open(d, l, now) ||
	    !database_done(&d->database, queue_expire(d->db, &n), "expire") ||
	    n == 0)
		return;
	log_warn("%lld deployments were lost by their runners", (long long)n);
	d->events |= EVENT_QUEUE | EVENT_STATUS;
}

/* Tries begin before the first lease expires, so that it is known then whether
 * it could have been renewed. */
static void
leases_check(struct dispatch *d, struct leases *l, int64_t now)
{
	const int64_t third = lease_ms(d) / 3;
	const int64_t early = third < OPEN_MS ? third : OPEN_MS;
	int64_t left;
	const struct err *e;

	l->at = now + third;
	e = lease_left(d->db, d->a, &left);
	if (e != NULL && e->code == ERR_NOTFOUND) {
		e = NULL;
		left = INT64_MAX;
	}
	if (!database_done(&d->database, e, "expire"))
		return;
	if (left > early) {
		log_fault_over(LEASES);
		l->open_since = 0;
		if (left - early < third)
			l->at = now + left - early;
		return;
	}
	l->at = now + TRY_MS;
	if (left >= 0)
		(void)is_open(d, l, now);
	else
		leases_expire(d, l, now);
}

static int64_t
leases_next(const struct dispatch *d, const void *state, int64_t now)
{
	const struct leases *l = state;
	const int64_t since = d->database.since;

	(void)now;
	if (since == 0)
		return INT64_MAX;
	return l->at < since + lease_ms(d) ? since + lease_ms(d) : l->at;
}

static void
leases_work(struct dispatch *d, void *state, int64_t now)
{
	struct leases *l = state;

	if (l->since != d->database.since) {
		l->since = d->database.since;
		l->open_since = 0;
	}
	if (now >= leases_next(d, state, now))
		leases_check(d, l, now);
}

const struct part leases_part = {
	.size = sizeof(struct leases),
	.work = leases_work,
	.next = leases_next,
};
