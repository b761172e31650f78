/* SPDX-License-Identifier: ISC */
#include "store/writable.h"

#include "core/str.h"
#include "store/lease.h"

#define SOUND_MS 30000 /* between tries */
#define FAILED_MS 1000
#define HUNG_MS 3000  /* a try that takes longer has failed */
#define DEAD_MS 60000 /* its process has ended */
#define REJECTED_MS 60000

void
writable_note(struct writable *w, const struct err *e)
{
	const int64_t now = time_mono_ms();

	if (e == NULL)
		atomic_store(&w->written, now);
	else if (db_is_full(e))
		atomic_store(&w->full, now);
	else if (db_rejects_writes(e))
		atomic_store(&w->rejected, now);
}

const struct err *
writable_try(struct db *db)
{
	const struct err *e;

	if ((e = lease_look(db)) != NULL)
		return e;
	return lease_try(db);
}

static bool
is_hung(struct writable *w, int64_t now)
{
	const int64_t begun = atomic_load(&w->begun);

	return begun > atomic_load(&w->ended) && now - begun > HUNG_MS &&
	    now - begun < DEAD_MS;
}

/* Tries if it is time, and no other process does. */
static void
try_due(struct writable *w, struct db *db, int64_t now)
{
	const int64_t ended = atomic_load(&w->ended);
	const struct err *e;
	int64_t begun = atomic_load(&w->begun), pause = SOUND_MS;

	if (begun > ended ? now - begun < DEAD_MS : false)
		return;
	if (atomic_load(&w->error) != 0 ||
	    atomic_load(&w->rejected) > atomic_load(&w->written))
		pause = FAILED_MS;
	if ((ended != 0 && now - ended < pause) ||
	    !atomic_compare_exchange_strong(&w->begun, &begun, now))
		return;
	e = lease_try(db);
	atomic_store(&w->error, e == NULL ? 0 : e->sys > 0 ? e->sys : -1);
	atomic_store(&w->ended, time_mono_ms());
}

/* On a full disk, writes for which a table has room still succeed, those of a try
 * among them: they do not mean that others do. */
static bool
was_rejected(struct writable *w, int64_t now)
{
	const int64_t at = atomic_load(&w->rejected);
	const int64_t full = atomic_load(&w->full);

	return (full != 0 && now - full < REJECTED_MS) ||
	    (at > atomic_load(&w->written) && now - at < REJECTED_MS);
}

const struct err *
writable_check(struct writable *w, struct db *db)
{
	const int64_t now = time_mono_ms();
	const struct err *e;

	if ((e = lease_look(db)) != NULL)
		return e;
	try_due(w, db, now);
	if (is_hung(w, now))
		return err_new(ERR_UNAVAILABLE, "a write does not end");
	if (atomic_load(&w->error) != 0)
		return err_new(ERR_UNAVAILABLE, "a write failed: error %d",
		    atomic_load(&w->error));
	return was_rejected(w, now) ?
	    err_new(ERR_UNAVAILABLE, "the last writes were rejected") :
	    NULL;
}
