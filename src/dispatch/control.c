/* SPDX-License-Identifier: ISC */
#include "dispatch/control.h"

#include <string.h>

#include "core/log.h"
#include "core/str.h"
#include "dispatch/context.h"

#define LATE_MS 5000 /* beyond the time that a canceled job has */

void
control_leased(const struct dispatch *d, struct task *t)
{
	t->renew_at = time_mono_ms() + d->settings.runner.lease * 1000 / 3;
}

const struct err *
control_renew(const struct dispatch *d, struct task *t)
{
	const struct err *e;

	e = queue_renew(d->db, t->run.id, t->run.epoch, d->spool.owner,
	    d->settings.runner.lease);
	if (e == NULL)
		control_leased(d, t);
	return e;
}

void
control_sweep(const struct task *t)
{
	struct wire w = { .magic = WIRE_MAGIC,
		.type = WIRE_KILL,
		.deployment = t->run.id,
		.epoch = t->run.epoch,
		.project = t->run.project };
	const struct err *e;

	(void)memcpy(w.dir, t->run.dir, strlen(t->run.dir));
	if ((e = wire_send(CONTEXT_WIRE, &w, NULL, 0)) != NULL)
		log_err(e, t->run.name);
}

void
control_kill(struct task *t, const char *why)
{
	if (t->is_killed || !task_is_live(t))
		return;
	log_warn("%s: killed: %s", t->run.name, why);
	t->is_killed = true;
	control_sweep(t);
}

void
control_cancel(const struct dispatch *d, struct task *t)
{
	const struct settings_runner *s = &d->settings.runner;
	const struct err *e;

	if (t->is_canceled || !task_is_live(t))
		return;
	log_info("%s: a cancellation was requested", t->run.name);
	t->is_canceled = true;
	if (t->phase == PHASE_PREPARING)
		return;
	t->kill_at = time_mono_ms() + (2 * s->grace + s->cancel_grace) * 1000 +
	    LATE_MS;
	if ((e = run_cancel(&d->spool, &t->run)) != NULL)
		log_err(e, t->run.name);
}

void
control_fence(struct task *t)
{
	if (t->is_fenced)
		return;
	t->is_fenced = true;
	control_kill(t, "its lease was lost");
}
