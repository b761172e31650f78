/* SPDX-License-Identifier: ISC */
/*
 * Takes over the running deployments and the claims of other dispatchers of
 * this spool.
 *
 * A claim whose owner has no file in this spool belongs to another spool,
 * perhaps to that of a host with the same runner.name.  It stays until its
 * lease expires, as do the claims of a spool that was lost.
 */
#include "core/log.h"
#include "core/str.h"
#include "dispatch/context.h"
#include "dispatch/part.h"
#include "dispatch/task.h"
#include "dispatch/unstarted.h"
#include "dispatch/watch.h"
#include "queue/joblog.h"

#define SCAN_MS 5000    /* between scans of the spool */
#define RETRY_MS 1000   /* after an error */
#define NAMES_MS 300000 /* between looks for other runners of this name */

struct recovery {
	int64_t scan_at;
	int64_t settle_at;
	int64_t names_at;
	bool is_settled; /* no rows are left of a dispatcher that died */
};

static void
run_take_over(struct dispatch *d, const char *name)
{
	struct run run;
	struct task *t;
	const struct err *e;

	if ((e = run_adopt(&d->spool, name, &run)) != NULL) {
		if (e->code != ERR_CONFLICT && e->code != ERR_NOTFOUND)
			log_fault(e, name);
		return;
	}
	log_fault_over(name);
	t = task_open(d->tasks, &run);
	t->is_adopted = true;
	watch_task(d->watch, &d->spool, t);
	task_move(t, PHASE_RUNNING);
	log_info("%s: adopted from the spool", name);
}

static bool
scan_one(void *context, const char *name)
{
	struct dispatch *d = context;
	int64_t id, epoch;

	if (run_name_parse(name, &id, &epoch) &&
	    task_find(d->tasks, id, epoch) == NULL)
		run_take_over(d, name);
	return true;
}

static void
spool_scan(struct dispatch *d, struct recovery *r, int64_t now)
{
	r->scan_at = now + SCAN_MS;
	spool_names(&d->spool, "", scan_one, d);
	run_sweep(&d->spool);
	if (spool_sweep(&d->spool))
		r->is_settled = false;
}

/* Whether this dispatcher, or another one of this spool, follows it. */
static bool
is_here(const struct dispatch *d, const struct held *h)
{
	return task_find(d->tasks, h->id, h->epoch) != NULL ||
	    run_exists(&d->spool, h->id, h->epoch);
}

/* Ends a deployment that may have run. */
static bool
end_lost(struct dispatch *d, const struct held *h)
{
	struct queue_end end = { .id = h->id,
		.epoch = h->epoch,
		.reason = REASON_LOST,
		.detail = "The runner was stopped before it could report the "
			  "outcome." };
	struct joblog_state state = { .size = 0 };

	log_warn("%lld: lost by the runner", (long long)h->id);
	if (!database_done(&d->database,
		joblog_state(d->db, d->a, h->id, &state), "settle"))
		return false;
	end.log_size = state.size;
	return unstarted_end(d, &end);
}

/* Settles the claims of a dead dispatcher that have no directory: the monitor
 * got no request to start them. But a crash of the machine can lose the
 * directory. */
static bool
settle_owner(struct dispatch *d, const struct dead_owner *owner)
{
	const struct held *h;
	struct list list;
	size_t i;
	bool settled;

	if (!database_done(&d->database,
		queue_held(d->db, d->a, owner->name, &list), "settle"))
		return false;
	h = list.items;
	for (i = 0; i < list.n; i++) {
		if (is_here(d, &h[i]))
			continue;
		d->events |= EVENT_QUEUE;
		if (owner->this_boot) {
			log_info("%lld: never ran; returned to the queue",
			    (long long)h[i].id);
			settled = unstarted_release(d, h[i].id, h[i].epoch);
		} else {
			settled = end_lost(d, &h[i]);
		}
		if (!settled)
			return false;
	}
	return true;
}

/* Logs when another runner uses this name. */
static void
runner_name_twice(struct dispatch *d, struct recovery *r, int64_t now)
{
	const char *me = arena_printf(d->a, "runner %s", d->name);
	const struct held *h;
	struct list list;
	size_t i, n = 0;

	r->names_at = now + NAMES_MS;
	if (!database_done(&d->database,
		queue_held_by_runner(d->db, d->a, d->name, &list), "namesakes"))
		return;
	h = list.items;
	for (i = 0; i < list.n; i++)
		if (!is_here(d, &h[i]) && h[i].owner != NULL &&
		    !spool_owner_lives(&d->spool, h[i].owner))
			n++;
	if (n > 0)
		log_fault(
		    err_new(ERR_CONFLICT,
			"another runner has this name and holds deployments, "
			"or one did whose spool is lost; they are left alone "
			"until their leases expire: see runner.name"),
		    me);
	else
		log_fault_over(me);
}

static void
claims_settle(struct dispatch *d, struct recovery *r, int64_t now)
{
	const struct dead_owner *owner;
	struct list dead;
	size_t i;

	r->settle_at = now + RETRY_MS;
	spool_dead(&d->spool, d->a, &dead);
	owner = dead.items;
	for (i = 0; i < dead.n; i++)
		if (!settle_owner(d, &owner[i]))
			return;
	runner_name_twice(d, r, now);
	spool_forget(&d->spool, &dead);
	r->is_settled = true;
	r->names_at = now + d->settings.runner.lease * 1000;
}

static void
recovery_work(struct dispatch *d, void *state, int64_t now)
{
	struct recovery *r = state;

	if (now >= r->scan_at)
		spool_scan(d, r, now);
	if (!database_is_usable(&d->database))
		return;
	if (!r->is_settled && now >= r->settle_at)
		claims_settle(d, r, now);
	if (r->is_settled && now >= r->names_at)
		runner_name_twice(d, r, now);
}

static int64_t
recovery_next(const struct dispatch *d, const void *state, int64_t now)
{
	const struct recovery *r = state;
	int64_t due = r->is_settled ? r->names_at : r->settle_at;

	(void)now;
	if (due < d->database.at)
		due = d->database.at;
	return d->database.is_checked && due < r->scan_at ? due : r->scan_at;
}

const struct part recovery_part = {
	.flags = PART_OFFLINE,
	.size = sizeof(struct recovery),
	.work = recovery_work,
	.next = recovery_next,
};
